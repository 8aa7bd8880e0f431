/** The names of this machine in a URL, as `URL.hostname` has them: what goes there crosses no network. */
export const LOOPBACK_HOSTS: readonly string[] = ['localhost', '127.0.0.1', '[::1]']
