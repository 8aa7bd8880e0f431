/** What autoscaling looks at: nodes and pods of a cluster, as its scheduler weighs them. Not all that a scheduler heeds
 *  is here: a pod that asks for more is not judged (`isJudged`), neither as a reason for more nodes nor as one that
 *  finds another node. */

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

/** One thing that labels of a node must be, as node affinity has it. */
export interface LabelRule {
  readonly key: string
  readonly operator: string
  readonly values: readonly string[]
}

export interface LoadNode {
  readonly name: string
  readonly isReady: boolean
  /** It takes new pods. */
  readonly isSchedulable: boolean
  /** Somebody said that autoscaling keeps it. */
  readonly isKept: boolean
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly NodeTaint[]
  /** What pods can have of it. */
  readonly allocatable: Amounts
}

export interface LoadPod {
  /** `namespace/name`. */
  readonly name: string
  /** Empty while it has none. */
  readonly node: string
  /** The scheduler says that no node takes it, and that waiting alone does not help. */
  readonly isUnschedulable: boolean
  readonly requests: Amounts
  /** Labels that its node must have. */
  readonly selector: Readonly<Record<string, string>>
  /** One of these must hold, with all its rules; nothing when empty. */
  readonly affinity: readonly (readonly LabelRule[])[]
  readonly tolerations: readonly Toleration[]
  /** Ports of its node that it takes for itself. */
  readonly hostPorts: readonly string[]
  /** Of two pods with one of these in common each needs a node of its own. */
  readonly apart: readonly string[]
  /** Each node has its own, which goes with it. */
  readonly isOfNode: boolean
  /** Why it must not be moved, for people; empty when it may. */
  readonly stays: string
  /** Disruption budgets that it counts for. */
  readonly budgets: readonly string[]
  /** Everything that it asks of a node is here. */
  readonly isJudged: boolean
}

export interface Load {
  readonly nodes: readonly LoadNode[]
  readonly pods: readonly LoadPod[]
  /** How many pods of each budget may be away besides those that are. */
  readonly budgets: Readonly<Record<string, number>>
}
