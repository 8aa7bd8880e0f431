/** The input of autoscaling: nodes and pods of a cluster, as its scheduler sees them. It does not cover every
 *  constraint of a scheduler: a pod with other constraints is not judged (`isJudged`), neither as a reason for more
 *  nodes nor as a pod that fits on another node. */

/** By name of the resource: processors in thousandths, memory and disks in bytes, all others counted. */
export type Amounts = Readonly<Record<string, number>>

export interface NodeTaint {
  readonly key: string
  readonly value: string
  readonly effect: string
}

export interface Toleration {
  /** Empty for all keys. */
  readonly key: string
  readonly operator: string
  readonly value: string
  /** Empty for all effects. */
  readonly effect: string
}

/** One requirement on labels of a node, as in node affinity. */
export interface LabelRule {
  readonly key: string
  readonly operator: string
  readonly values: readonly string[]
}

export interface LoadNode {
  readonly name: string
  readonly isReady: boolean
  /** It accepts new pods. */
  readonly isSchedulable: boolean
  /** An annotation says that autoscaling must keep it. */
  readonly isKept: boolean
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly NodeTaint[]
  /** Its resources for pods. */
  readonly allocatable: Amounts
}

export interface LoadPod {
  /** `namespace/name`. */
  readonly name: string
  /** Empty while it has none. */
  readonly node: string
  /** The scheduler reports that no node accepts it, and that waiting alone does not help. */
  readonly isUnschedulable: boolean
  readonly requests: Amounts
  /** Labels that its node must have. */
  readonly selector: Readonly<Record<string, string>>
  /** One of these must hold, with all its rules; no requirement when empty. */
  readonly affinity: readonly (readonly LabelRule[])[]
  readonly tolerations: readonly Toleration[]
  /** Host ports that it uses. */
  readonly hostPorts: readonly string[]
  /** Two pods with one of these in common need different nodes. */
  readonly apart: readonly string[]
  /** Each node has its own, which is deleted with the node. */
  readonly isOfNode: boolean
  /** Why it must not be moved, for people; empty when it may. */
  readonly stays: string
  /** Disruption budgets that it counts for. */
  readonly budgets: readonly string[]
  /** All its requirements on a node are included here. */
  readonly isJudged: boolean
}

export interface Load {
  readonly nodes: readonly LoadNode[]
  readonly pods: readonly LoadPod[]
  /** How many more pods of each budget may be disrupted. */
  readonly budgets: Readonly<Record<string, number>>
}
