/** @file status.h Status codes, error objects, cancel handles and versions. */
#ifndef PERIGEE_STATUS_H
#define PERIGEE_STATUS_H

#include <stddef.h>
#include <stdint.h>

#include "perigee/status_codes.h"

/** Marks what the library exports. */
#if defined(PERIGEE_BUILD) && defined(__GNUC__)
#define PERIGEE_API __attribute__((visibility("default")))
#else
#define PERIGEE_API
#endif

/** Version of these headers: raised by breaks of the interface. */
#define PERIGEE_VERSION_MAJOR 0
/** Version of these headers: raised by additions, before 1.0 by breaks too. */
#define PERIGEE_VERSION_MINOR 1
/** Version of these headers: raised by fixes. */
#define PERIGEE_VERSION_PATCH 0
/** Raised whenever a program built against older headers would no longer run. */
#define PERIGEE_ABI_VERSION 0

#ifdef __cplusplus
extern "C" {
#endif

/** Version of the library in use, as "0.1.0". Static. Any thread. Since 0.1. */
PERIGEE_API const char *perigee_version(void);
/** PERIGEE_ABI_VERSION of the library in use. Any thread. Since 0.1. */
PERIGEE_API int32_t perigee_abi_version(void);

/** Name of a status, as "PERIGEE_E_TENSOR"; "PERIGEE_E_?" for an unknown one. Static. Any thread. Since 0.1. */
PERIGEE_API const char *perigee_status_name(perigee_status status);
/** A few English words for a status. Static. Any thread. Since 0.1. */
PERIGEE_API const char *perigee_status_text(perigee_status status);

/**
 * What went wrong, as a value. Calls that can fail take `perigee_error **err` last; it may be NULL. On success it is
 * set to NULL, else to an object that the caller frees with perigee_error_free(). When memory is short the object is a
 * static one, which may be freed like any other. An error is immutable: any thread may read it.
 */
typedef struct perigee_error perigee_error;

/** Status of the error; PERIGEE_OK for NULL. Since 0.1. */
PERIGEE_API perigee_status perigee_error_status(const perigee_error *error);
/** One sentence, UTF-8, never NULL; borrowed until the error is freed. Since 0.1. */
PERIGEE_API const char *perigee_error_message(const perigee_error *error);
/** Name of the tensor concerned, or NULL. Borrowed until the error is freed. Since 0.1. */
PERIGEE_API const char *perigee_error_tensor(const perigee_error *error);
/** Path of the file concerned, or NULL. Borrowed until the error is freed. Since 0.1. */
PERIGEE_API const char *perigee_error_file(const perigee_error *error);
/** Byte offset in the file (or in the text given), or -1. Since 0.1. */
PERIGEE_API int64_t perigee_error_offset(const perigee_error *error);
/** Zero-based layer concerned, or -1. Since 0.1. */
PERIGEE_API int64_t perigee_error_layer(const perigee_error *error);
/** Free an error. NULL is allowed. Since 0.1. */
PERIGEE_API void perigee_error_free(perigee_error *error);

/**
 * A counted handle by which any thread stops a running load, step or generation. It stays triggered until reset; a
 * trigger before the call counts. All calls on it are safe from any thread and from a signal handler, new and free
 * apart.
 */
typedef struct perigee_cancel perigee_cancel;

/** Make a cancel handle, not triggered. Freed with perigee_cancel_free(). Since 0.1. */
PERIGEE_API perigee_status perigee_cancel_new(perigee_cancel **out, perigee_error **err);
/** Ask the call that was given this handle to stop. Since 0.1. */
PERIGEE_API void perigee_cancel_trigger(perigee_cancel *cancel);
/** Make the handle ready for another call. Since 0.1. */
PERIGEE_API void perigee_cancel_reset(perigee_cancel *cancel);
/** 1 if triggered, else 0. Since 0.1. */
PERIGEE_API int perigee_cancel_triggered(const perigee_cancel *cancel);
/** Drop the caller's reference. A call that is running keeps its own. NULL is allowed. Since 0.1. */
PERIGEE_API void perigee_cancel_free(perigee_cancel *cancel);

#ifdef __cplusplus
}
#endif

#endif
