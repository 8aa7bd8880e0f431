/** THE list: every stored kind. Routes join as `ROUTES` below, one line per noun. */
import type { Resource } from './define.ts'
import { Instance, NodeReport, Volume } from './instance.ts'
import { Operation } from './operation.ts'
import { Node, Plan, Region, Template, Zone } from './platform.ts'
import { Server } from './server.ts'
import { Storage } from './storage.ts'

export const RESOURCES: readonly Resource[] = [Region, Zone, Plan, Template, Node, Server, Storage, Operation, Instance, Volume, NodeReport]

/** The namespace that holds an account's resources. */
export const accountNamespace = (accountId: string): string => `acct-${accountId}`
/** The account of a namespace; undefined when it is not an account's. */
export const accountOfNamespace = (namespace: string): string | undefined => (namespace.startsWith('acct-') ? namespace.slice(5) : undefined)
