/** As the machines of databases know the store of their archives, and as its certificate says. */
export const ARCHIVE_HOST = 'archive.internal'
