/** Users of guests, for signing in. Their names are passed to `ssh` and to shells: no name can be an option or a
 *  command. Linux has no longer ones. */
export const GUEST_USER_LENGTH_MAXIMUM = 32
export const GUEST_USER_PATTERN = /^[A-Za-z_][A-Za-z0-9_.-]{0,31}$/
