/** What PostgreSQL was asked for a storage, and whether it was granted. */
export const CLAIMED = 'Claimed'
export const ATTACHED = 'Attached'
export const RESIZED = 'Resized'
export const RESERVED = 'Reserved'
/** Whether its host has the key of the backup that it is made from. */
export const KEY_SHARED = 'KeyShared'
