/** UUIDs (RFC 9562). Ids in paths may be anything, and PostgreSQL takes only what is one. */

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Whether the text is a UUID of whatever version, in letters of either case. */
export const isUuid = (text: string): boolean => UUID.test(text)
