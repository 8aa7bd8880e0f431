/** A host's data about the nodes and pods of a cluster, for autoscaling. The code that uses them defines the meaning of
 *  each field. */
import { z } from 'zod'
import type { Load } from '../../domain/node-pool/autoscaling/load.ts'

const Words = z.record(z.string(), z.string())
const Amounts = z.record(z.string(), z.number())
const Texts = z.array(z.string())

export const LoadNode = z.object({
  name: z.string(),
  isReady: z.boolean(),
  isSchedulable: z.boolean(),
  isKept: z.boolean(),
  labels: Words,
  taints: z.array(z.object({ key: z.string(), value: z.string(), effect: z.string() })),
  allocatable: Amounts,
})

export const LoadPod = z.object({
  name: z.string(),
  node: z.string(),
  isUnschedulable: z.boolean(),
  requests: Amounts,
  selector: Words,
  affinity: z.array(z.array(z.object({ key: z.string(), operator: z.string(), values: Texts }))),
  tolerations: z.array(z.object({ key: z.string(), operator: z.string(), value: z.string(), effect: z.string() })),
  hostPorts: Texts,
  apart: Texts,
  isOfNode: z.boolean(),
  stays: z.string(),
  budgets: Texts,
  isJudged: z.boolean(),
})
export type LoadPod = z.infer<typeof LoadPod>

export const ClusterLoad = z.object({
  nodes: z.array(LoadNode),
  pods: z.array(LoadPod),
  budgets: Amounts,
}) satisfies z.ZodType<Load>
export type ClusterLoad = z.infer<typeof ClusterLoad>
