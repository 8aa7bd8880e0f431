/** Whether PostgreSQL granted the claims of the storage. */
export const CLAIMED = 'Claimed'
export const ATTACHED = 'Attached'
export const RESIZED = 'Resized'
export const RESERVED = 'Reserved'
/** Whether its host has the key of the backup that it is created from. */
export const KEY_SHARED = 'KeyShared'
