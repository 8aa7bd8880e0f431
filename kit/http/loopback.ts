/** The names of this machine in a URL, in the form of `URL.hostname`: requests to them cross no network. */
export const LOOPBACK_HOSTS: readonly string[] = ['localhost', '127.0.0.1', '[::1]']
