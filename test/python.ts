/** Debian's, as images have it. What else is called `python3` may be a shim, which takes longer than what tests run. */
export const PYTHON = '/usr/bin/python3'
