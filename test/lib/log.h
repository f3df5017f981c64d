/* SPDX-License-Identifier: MIT */
/* The library's log, kept in memory for the test that wants to know what it says. */
#ifndef TEST_LIB_LOG_H
#define TEST_LIB_LOG_H

/* Before the library is used: "XTAL_LOG=..." for the environment, of this process and of its
 * children. */
const char *log_setting(void);
void log_empty(void);
/* How many lines contain both; NULL: any do. */
unsigned log_lines(const char *one, const char *two);
void assert_logged(const char *one, const char *two);

#endif
