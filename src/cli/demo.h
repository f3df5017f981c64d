/* SPDX-License-Identifier: MIT */
/* The demo of URMA, for demo.c. */
#ifndef XTAL_CLI_DEMO_H
#define XTAL_CLI_DEMO_H

/* Runs it. The exit status. */
int cli_demo_urma(void);

#endif
