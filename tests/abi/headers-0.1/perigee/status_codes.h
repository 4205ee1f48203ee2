/* Written by tools/public_enums.sh from src/base/status.def. */
#ifndef PERIGEE_STATUS_CODES_H
#define PERIGEE_STATUS_CODES_H

/** What a call says of how it went. Numbers never change; new ones may appear between them. */
typedef enum perigee_status {
    PERIGEE_OK = 0, /**< success */
    PERIGEE_E_ARGUMENT = 10, /**< bad argument */
    PERIGEE_E_RANGE = 11, /**< value out of bounds */
    PERIGEE_E_STATE = 12, /**< call not valid in this state */
    PERIGEE_E_TOKEN = 13, /**< token id outside the vocabulary */
    PERIGEE_E_CONTEXT_FULL = 14, /**< context full */
    PERIGEE_E_BUFFER = 15, /**< buffer too small */
    PERIGEE_E_SCOPE = 16, /**< option of another scope */
    PERIGEE_E_MEMORY = 30, /**< out of memory */
    PERIGEE_E_IO = 31, /**< read or write failed */
    PERIGEE_E_NOT_FOUND = 32, /**< not found */
    PERIGEE_E_SYSTEM = 33, /**< system call failed */
    PERIGEE_E_DISK_FULL = 34, /**< no space left on the disk */
    PERIGEE_E_FORMAT = 50, /**< file not well-formed */
    PERIGEE_E_CONFIG = 51, /**< bad model configuration */
    PERIGEE_E_TENSOR = 52, /**< tensor missing or of another kind */
    PERIGEE_E_MISMATCH = 53, /**< data of another model */
    PERIGEE_E_VERSION = 54, /**< unknown version */
    PERIGEE_E_CHECKSUM = 55, /**< checksum does not match */
    PERIGEE_E_TEXT = 56, /**< text is not valid UTF-8 */
    PERIGEE_E_SCHEMA = 57, /**< bad schema or pattern */
    PERIGEE_E_TRUNCATED = 58, /**< data ends too early */
    PERIGEE_E_CANCELLED = 70, /**< cancelled */
    PERIGEE_E_NOT_FINITE = 71, /**< values are not finite */
    PERIGEE_E_CALLBACK = 72, /**< stopped by a callback */
    PERIGEE_E_KERNEL = 73, /**< kernel failed or refused */
    PERIGEE_E_UNSUPPORTED = 90, /**< not supported */
    PERIGEE_E_INTERNAL = 91 /**< internal error */
} perigee_status;

#endif
