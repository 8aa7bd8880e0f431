/** Host name of the store of archives for the machines of databases; it is in the store's certificate. */
export const ARCHIVE_HOST = 'archive.internal'
