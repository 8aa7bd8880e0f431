export * from './claims.ts'
export * from './secrets.ts'
