export * from './archive.ts'
export * from './claims.ts'
export * from './secrets.ts'
