/** What the cloud says to the organisation platform of its operator, and what that answers. Each may be said twice. */
import { z } from 'zod'

/** A cluster as the platform learns of it. */
export interface PlatformCluster {
  /** Of the cloud, by which it is found again. */
  readonly id: string
  readonly organisationId: string
  readonly name: string
  readonly region: string
  readonly version: string
  readonly endpoint: string
  /** PEM of who signs for its API. */
  readonly certificateAuthority: string
  /** What runs for it beside its control plane and becomes a stack of the platform. */
  readonly stacks: readonly { readonly name: string; readonly version: string }[]
}

export const AGENT_OBJECTS_MAXIMUM = 32
/** An object of Kubernetes that belongs to the agent. */
export const AgentObject = z.looseObject({
  apiVersion: z.string().max(100),
  kind: z.string().max(100),
  metadata: z.looseObject({
    name: z.string().regex(/^[a-z0-9]([-a-z0-9.:]{0,251}[a-z0-9])?$/),
    namespace: z
      .string()
      .regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/)
      .optional(),
    labels: z.record(z.string(), z.string()).optional(),
  }),
})
export type AgentObject = z.infer<typeof AgentObject>

export const Registered = z.object({
  /** What the platform calls it. */
  cluster_id: z.string().min(1).max(100),
  /** Its page. */
  url: z.url({ protocol: /^https?$/ }).max(300),
  /** What its agent in the cluster consists of. */
  agent: z.array(AgentObject).max(AGENT_OBJECTS_MAXIMUM).default([]),
})
export type Registered = z.infer<typeof Registered>

/** The platform says no, and why, for people. Asking again changes nothing. */
export class PlatformRefusal extends Error {}

/** Each throws Unavailable when the platform does not answer, and PlatformRefusal when it says no. */
export interface OrganisationPlatform {
  /** Imports it, or says anew what it is. */
  register(cluster: PlatformCluster): Promise<Registered>
  /** Free for one that it does not have. */
  deregister(id: string): Promise<void>
}
