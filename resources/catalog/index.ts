/** Catalog of the cloud: regions, zones, plans and templates. */
export * from './routes.ts'
export * from './stored.ts'
