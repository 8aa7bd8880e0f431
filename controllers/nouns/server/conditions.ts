/** Types of the conditions with the reason why PostgreSQL refused an effect of a server. */
export const CLAIMED = 'Claimed'
export const RESERVED = 'Reserved'
export const RESIZED = 'Resized'
export const RENUMBERED = 'Renumbered'
export const JOINED = 'Joined'
