/** The protocol between the cloud and its operator's organisation platform. Each call may be repeated. */
import { z } from 'zod'

/** The data about a cluster for the platform. */
export interface PlatformCluster {
  /** Id in the cloud, which identifies it later. */
  readonly id: string
  readonly organisationId: string
  readonly name: string
  readonly region: string
  readonly version: string
  readonly endpoint: string
  /** PEM of its API's authority. */
  readonly certificateAuthority: string
  /** Programs beside its control plane that become stacks of the platform. */
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

export const RegistrationResult = z.object({
  /** Id in the platform. */
  cluster_id: z.string().min(1).max(100),
  /** URL of its page. */
  url: z.url({ protocol: /^https?$/ }).max(300),
  /** Objects of its agent in the cluster. */
  agent: z.array(AgentObject).max(AGENT_OBJECTS_MAXIMUM).default([]),
})
export type RegistrationResult = z.infer<typeof RegistrationResult>

/** The platform refuses, with the reason for people. A retry does not help. */
export class PlatformRefusal extends Error {}

/** Each method throws Unavailable when the platform does not answer, and PlatformRefusal when it refuses. */
export interface OrganisationPlatform {
  /** Imports the cluster, or updates its data. */
  register(cluster: PlatformCluster): Promise<RegistrationResult>
  /** Does nothing when the platform does not have it. */
  deregister(id: string): Promise<void>
}
