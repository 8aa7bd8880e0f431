export * from './claims.ts'
export * from './issuer.ts'
export * from './snapshots.ts'
export * from './tokens.ts'
