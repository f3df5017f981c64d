/* SPDX-License-Identifier: MIT */
/* The words for the core's statuses. */
#include "base/status.h"

const char *xtal_status_sentence(enum xtal_status status)
{
	switch (status) {
	case XTAL_OK:
		return "The operation succeeded.";
	case XTAL_UNSUPPORTED:
		return "The operation is not supported here.";
	case XTAL_LOCAL_LENGTH:
		return "The length does not fit the local memory or the operation.";
	case XTAL_LOCAL_OPERATION:
		return "The operation is not valid on the local side.";
	case XTAL_LOCAL_ACCESS:
		return "The local memory is not registered, or not accessible for this.";
	case XTAL_REMOTE_LENGTH:
		return "The length does not fit the remote memory or buffer.";
	case XTAL_REMOTE_UNSUPPORTED:
		return "The target does not support the operation, or not at this alignment.";
	case XTAL_REMOTE_OPERATION:
		return "The target failed to execute the operation.";
	case XTAL_REMOTE_ACCESS:
		return "The target refused access: wrong token, range, right or incarnation.";
	case XTAL_UNREACHABLE:
		return "The peer could not be reached, or did not answer in time.";
	case XTAL_NOT_READY:
		return "The receiver had no buffer posted.";
	case XTAL_FLUSHED:
		return "The operation was flushed before it was executed.";
	case XTAL_SUSPEND_DONE:
		return "The queue is suspended.";
	case XTAL_FLUSH_DONE:
		return "The queue has been flushed.";
	case XTAL_UNHANDLED:
		return "The operation was never handled.";
	case XTAL_LOCAL_POISON:
		return "The local memory is damaged.";
	case XTAL_REMOTE_POISON:
		return "The remote memory is damaged.";
	}
	return "The status is unknown.";
}

const char *xtal_status_word(enum xtal_status status)
{
	switch (status) {
	case XTAL_OK:
		return "ok";
	case XTAL_UNSUPPORTED:
		return "unsupported";
	case XTAL_LOCAL_LENGTH:
		return "local-length";
	case XTAL_LOCAL_OPERATION:
		return "local-operation";
	case XTAL_LOCAL_ACCESS:
		return "local-access";
	case XTAL_REMOTE_LENGTH:
		return "remote-length";
	case XTAL_REMOTE_UNSUPPORTED:
		return "remote-unsupported";
	case XTAL_REMOTE_OPERATION:
		return "remote-operation";
	case XTAL_REMOTE_ACCESS:
		return "remote-access";
	case XTAL_UNREACHABLE:
		return "unreachable";
	case XTAL_NOT_READY:
		return "not-ready";
	case XTAL_FLUSHED:
		return "flushed";
	case XTAL_SUSPEND_DONE:
		return "suspend-done";
	case XTAL_FLUSH_DONE:
		return "flush-done";
	case XTAL_UNHANDLED:
		return "unhandled";
	case XTAL_LOCAL_POISON:
		return "local-poison";
	case XTAL_REMOTE_POISON:
		return "remote-poison";
	}
	return "unknown";
}
