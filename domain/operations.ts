/** Operation kinds, statuses and deadlines, as the contract names them. */

export const OPERATION_KINDS = [
  'server.create',
  'server.metadata',
  'server.start',
  'server.stop',
  'server.restart',
  'server.delete',
  'server.force_release',
  'server.change_plan',
  'server.rebuild',
  'server.renumber_ipv6',
  'server.attach_network',
  'server.detach_network',
  'server.firewall',
  'server.move',
  'server.migrate',
  'server.recover',
  'server.settle_migration',
  'storage.create',
  'storage.attach',
  'storage.detach',
  'storage.resize',
  'storage.delete',
  'storage.backup',
  'storage.move',
  'storage.rebalance_policy',
  'storage.drain_host',
  'backup.restore',
  'backup.delete',
  'backup.verify',
  'template.create',
  'template.copy',
  'template.delete',
  'snapshot.create',
  'snapshot.delete',
  'router.sync',
  'floating_ip.sync',
  'network.sync',
  'public_pool.sync',
  'edge.sync',
  'edge.delete',
  'node.cordon',
  'node.uncordon',
  'node.drain',
  'node.fence',
  'node.maintenance',
  'node.agent_upgrade',
  'node.provision',
  'load_balancer.create',
  'load_balancer.delete',
  'database.create',
  'database.delete',
  'database.restore',
  'object_storage.migrate',
  'kubernetes_cluster.create',
  'kubernetes_cluster.delete',
  'kubernetes_cluster.upgrade',
  'kubernetes_cluster.snapshot',
  'kubernetes_cluster.restore',
  'kubernetes_cluster.platform_register',
  'kubernetes_cluster.platform_deregister',
  'node_pool.sync',
  'node_pool.delete',
  'kubernetes_host.bootstrap',
  'control_plane.expand',
  'control_plane.shrink',
] as const
export type OperationKind = (typeof OPERATION_KINDS)[number]

export const OPERATION_STATUSES = ['pending', 'running', 'succeeded', 'failed', 'cancelled'] as const
export type OperationStatus = (typeof OPERATION_STATUSES)[number]

/** Whether nothing comes after the status. */
export const isFinal = (status: OperationStatus): boolean =>
  status === 'succeeded' || status === 'failed' || status === 'cancelled'

/** Something that happened in an operation. */
export interface OperationEvent {
  readonly at: string
  readonly kind: string
  readonly message: string
  readonly data?: Readonly<Record<string, unknown>>
}

/** An operation that has ended, whole. Instants are RFC 3339 texts. */
export interface FinishedOperation {
  readonly id: string
  readonly kind: OperationKind
  readonly target: { readonly type: string; readonly id: string }
  readonly actor: string
  readonly requestId: string
  readonly status: OperationStatus
  readonly step: string
  readonly stepIndex: number
  readonly stepCount: number
  /** For people; empty unless failed. */
  readonly error: string
  readonly createdAt: string
  readonly deadlineAt: string
  readonly startedAt: string | null
  readonly finishedAt: string
  /** Oldest first, the newest OPERATION_EVENTS_MAXIMUM. */
  readonly events: readonly OperationEvent[]
}

/** The newest events that an operation keeps. */
export const OPERATION_EVENTS_MAXIMUM = 100

const DEADLINE_MINUTES: Partial<Record<OperationKind, number>> = {
  'server.create': 30,
  'server.rebuild': 30,
  'server.change_plan': 30,
  'server.move': 60,
  'server.migrate': 60,
  'server.recover': 30,
  'storage.backup': 720,
  'backup.restore': 720,
  'template.create': 360,
  'object_storage.migrate': 10_080,
  'kubernetes_cluster.create': 60,
  'kubernetes_cluster.upgrade': 60,
  'kubernetes_cluster.restore': 60,
  'node.drain': 1_440,
  'node.maintenance': 1_440,
  'node.fence': 15,
  'node.agent_upgrade': 60,
  'node.provision': 1_440,
}
const DEADLINE_MINUTES_DEFAULT = 10
/** For each GiB that is moved. */
const DEADLINE_MINUTES_PER_GIBIBYTE: Partial<Record<OperationKind, number>> = {
  'server.move': 2,
  'server.migrate': 2,
  'server.change_plan': 2,
}

/** What is left at least when a guest has used all the time that it was given to shut down. */
const MINUTES_AFTER_GRACE = 5

/** What makes an operation longer than others of its kind. */
export interface Extent {
  /** What is moved. */
  readonly gibibytes?: number | undefined
  /** What a guest is given to shut down. */
  readonly graceSeconds?: number | undefined
}

/** When an operation of the kind that starts now must have ended. */
export function deadlineOf(kind: OperationKind, now: Date, { gibibytes = 0, graceSeconds = 0 }: Extent = {}): Date {
  const minutes =
    (DEADLINE_MINUTES[kind] ?? DEADLINE_MINUTES_DEFAULT) + (DEADLINE_MINUTES_PER_GIBIBYTE[kind] ?? 0) * gibibytes
  return new Date(now.getTime() + Math.max(minutes, graceSeconds / 60 + MINUTES_AFTER_GRACE) * 60_000)
}

/** The argument of an operation that has been requested to be undone. */
const CANCEL = 'cancel'
/** Adds the request to cancel to the arguments of an operation. */
export const cancelling: Readonly<Record<string, string>> = { [CANCEL]: 'true' }
/** Whether cancellation of the operation was requested. */
export const isCancelled = ({
  arguments: said,
}: {
  readonly arguments?: Readonly<Record<string, string>> | undefined
}): boolean => said?.[CANCEL] === 'true'

/** Kinds that their requester may cancel. */
export const CANCELLABLE_KINDS: readonly OperationKind[] = ['server.move', 'server.migrate']
/** Kinds that operators may cancel. */
export const OPERATOR_CANCELLABLE_KINDS: readonly OperationKind[] = [
  ...CANCELLABLE_KINDS,
  'node.drain',
  'node.maintenance',
  'node.agent_upgrade',
  'node.provision',
]

/** The steps of a kind, in order: conditions that must come true. The current step is the first that is not. */
const STEPS: Partial<Record<OperationKind, readonly string[]>> = {
  'server.create': ['claimed', 'storage', 'instance', 'started'],
  'server.start': ['started'],
  'server.stop': ['stopped'],
  'server.restart': ['stopped', 'started'],
  'server.delete': ['instance', 'storage', 'released'],
  'server.change_plan': ['claimed', 'storage', 'sized'],
  'server.rebuild': ['stopped', 'storage', 'instance', 'started'],
  'server.force_release': ['instance', 'storage', 'released'],
  'server.renumber_ipv6': ['routed', 'told'],
  'server.move': ['reserved', 'prepared', 'moved', 'cleaned'],
  'server.migrate': ['reserved', 'prepared', 'moved', 'cleaned'],
  'public_pool.sync': ['mirrored', 'told'],
  'node.cordon': ['cordoned'],
  'node.uncordon': ['uncordoned'],
  'node.provision': ['access', 'reported', 'placeable'],
  'node.drain': ['cordoned', 'announced', 'emptied'],
  'node.maintenance': ['cordoned', 'announced', 'emptied'],
  'node.agent_upgrade': ['cordoned', 'upgraded'],
  'node.fence': ['proof', 'fenced'],
  'server.recover': ['reserved', 'moved', 'released', 'storage', 'started'],
}
const STEPS_OTHERWISE: readonly string[] = ['done']

/** The steps of the kind, in order; the last of them is the end. */
export const stepsOf = (kind: OperationKind): readonly string[] => STEPS[kind] ?? STEPS_OTHERWISE
