/** Kinds of operations, each with its steps and its deadline, and the statuses that they can be in, as the contract
 *  names them. */

interface OperationRule {
  /** Conditions that must come true, in order. The current step is the first that does not hold. */
  readonly steps?: readonly string[]
  /** Its maximum duration. */
  readonly minutes?: number
  /** Additional time for each GiB that is moved. */
  readonly minutesPerGibibyte?: number
  /** Who may cancel it: its requester and operators, or operators alone; nobody when absent. */
  readonly cancellableBy?: 'customers' | 'operators'
}

/** Every kind of the contract, including those that are not offered yet. */
const OPERATIONS = {
  'server.create': { steps: ['claimed', 'storage', 'instance', 'started'], minutes: 30 },
  'server.metadata': {},
  'server.start': { steps: ['started'] },
  'server.stop': { steps: ['stopped'] },
  'server.restart': { steps: ['stopped', 'started'] },
  'server.delete': { steps: ['instance', 'storage', 'released'] },
  'server.force_release': { steps: ['instance', 'storage', 'released'] },
  'server.change_plan': { steps: ['claimed', 'storage', 'sized'], minutes: 30, minutesPerGibibyte: 2 },
  'server.rebuild': { steps: ['stopped', 'storage', 'instance', 'started'], minutes: 30 },
  'server.renumber_ipv6': { steps: ['routed', 'announced'] },
  'server.attach_network': { steps: ['claimed', 'attached', 'applied'] },
  'server.detach_network': { steps: ['claimed', 'detached', 'applied'] },
  'server.firewall': {},
  'server.move': {
    steps: ['reserved', 'prepared', 'moved', 'cleaned'],
    minutes: 60,
    minutesPerGibibyte: 2,
    cancellableBy: 'customers',
  },
  'server.migrate': {
    steps: ['reserved', 'prepared', 'moved', 'cleaned'],
    minutes: 60,
    minutesPerGibibyte: 2,
    cancellableBy: 'customers',
  },
  'server.recover': { steps: ['reserved', 'moved', 'released', 'storage', 'started'], minutes: 30 },
  'server.settle_migration': {},
  'storage.create': {
    steps: ['claimed', 'made', 'attached'],
    minutes: 60,
    minutesPerGibibyte: 1,
    cancellableBy: 'customers',
  },
  'storage.attach': { steps: ['claimed', 'brought', 'attached'] },
  'storage.detach': { steps: ['released', 'detached'] },
  'storage.resize': { steps: ['claimed', 'grown'] },
  'storage.delete': { steps: ['removed', 'released'] },
  'storage.backup': { steps: ['claimed', 'placed', 'written', 'copied'], minutes: 720 },
  'storage.move': { steps: ['reserved', 'brought', 'cleaned'], minutes: 60, minutesPerGibibyte: 2 },
  'storage.rebalance_policy': { steps: ['applied', 'rebalanced'], minutes: 10_080 },
  'storage.drain_host': { steps: ['cordoned', 'emptied'], minutes: 1_440, cancellableBy: 'operators' },
  'backup.restore': { steps: ['placed', 'restored'], minutes: 720 },
  'backup.delete': { steps: ['removed', 'released'] },
  'backup.verify': { steps: ['placed', 'verified'], minutes: 720, cancellableBy: 'customers' },
  'template.create': { steps: ['claimed', 'fetched'], minutes: 360, cancellableBy: 'customers' },
  'template.copy': { steps: ['claimed', 'fetched'], minutes: 360, cancellableBy: 'customers' },
  'template.delete': { steps: ['removed'] },
  'snapshot.create': { steps: ['claimed', 'taken'] },
  'snapshot.delete': { steps: ['removed', 'released'] },
  'router.sync': { steps: ['claimed', 'applied', 'installed'] },
  'floating_ip.sync': { steps: ['claimed', 'applied', 'installed'] },
  'network.sync': { steps: ['claimed', 'applied', 'installed'] },
  'public_pool.sync': { steps: ['mirrored', 'announced'] },
  'edge.sync': { steps: ['claimed', 'machines', 'announced'], minutes: 30 },
  'edge.delete': { steps: ['withdrawn', 'machines', 'released'], minutes: 30 },
  'node.cordon': { steps: ['cordoned'] },
  'node.uncordon': { steps: ['uncordoned'] },
  'node.drain': { steps: ['cordoned', 'announced', 'emptied'], minutes: 1_440, cancellableBy: 'operators' },
  'node.fence': { steps: ['proof', 'fenced'], minutes: 15 },
  'node.maintenance': { steps: ['cordoned', 'announced', 'emptied'], minutes: 1_440, cancellableBy: 'operators' },
  'node.agent_upgrade': { steps: ['cordoned', 'upgraded'], minutes: 60, cancellableBy: 'operators' },
  'node.provision': { steps: ['access', 'reported', 'placeable'], minutes: 1_440, cancellableBy: 'operators' },
  'load_balancer.create': { steps: ['claimed', 'machines', 'applied'], minutes: 30 },
  'load_balancer.delete': { steps: ['machines', 'released'] },
  'database.create': { steps: ['claimed', 'machine', 'storage', 'applied', 'archived'], minutes: 30 },
  'database.delete': { steps: ['machine', 'storage', 'released'], minutes: 30 },
  'database.restore': { steps: ['claimed', 'machine', 'storage', 'restored', 'applied', 'archived'], minutes: 720 },
  'object_storage.migrate': {
    steps: ['prepared', 'copied', 'frozen', 'verified', 'switched'],
    minutes: 10_080,
    cancellableBy: 'customers',
  },
  'kubernetes_cluster.create': { steps: ['claimed', 'control_plane'], minutes: 60 },
  'kubernetes_cluster.delete': { steps: ['node_pools', 'control_plane', 'associated', 'released'], minutes: 60 },
  'kubernetes_cluster.upgrade': { steps: ['reached', 'saved', 'upgraded'], minutes: 60 },
  'kubernetes_cluster.snapshot': { steps: ['reached', 'taken'] },
  'kubernetes_cluster.restore': { steps: ['reached', 'saved', 'restored'], minutes: 60 },
  'kubernetes_cluster.platform_register': { steps: ['registered'] },
  'kubernetes_cluster.platform_deregister': { steps: ['deregistered'] },
  'node_pool.sync': { steps: ['claimed', 'servers', 'ready', 'drained'], minutes: 60 },
  'node_pool.delete': { steps: ['servers', 'released'], minutes: 60 },
  'kubernetes_host.bootstrap': {
    steps: ['claimed', 'network', 'control_plane', 'nodes', 'host', 'registered'],
    minutes: 120,
  },
  'control_plane.expand': {},
  'control_plane.shrink': {},
} as const satisfies Readonly<Record<string, OperationRule>>
export type OperationKind = keyof typeof OPERATIONS

/** The kinds of operations of a noun. */
export type KindOf<Noun extends string> = Extract<OperationKind, `${Noun}.${string}`>

/** The steps of operations of these kinds. One that has none in the table is done immediately. */
export type StepOf<Kind extends OperationKind> = Kind extends OperationKind
  ? (typeof OPERATIONS)[Kind] extends { readonly steps: readonly (infer Step)[] }
    ? Step
    : typeof DONE
  : never

/** A step of any operation. */
export type OperationStep = StepOf<OperationKind>

/** In the order of the table. */
export const OPERATION_KINDS = Object.keys(OPERATIONS) as readonly OperationKind[] // its keys
/** Whether the target is deleted when the operation has succeeded. */
export const isDeletion = (kind: OperationKind): boolean => kind.endsWith('.delete')
export const isOperationKind = (action: string): action is OperationKind => Object.hasOwn(OPERATIONS, action)

const MINUTES_DEFAULT = 10
const DONE = 'done'
const STEPS_DEFAULT = [DONE] as const

const ruleOf = (kind: OperationKind): OperationRule => OPERATIONS[kind]

export const OPERATION_STATUSES = ['pending', 'running', 'succeeded', 'failed', 'cancelled'] as const
export type OperationStatus = (typeof OPERATION_STATUSES)[number]

/** Whether the status is final. */
export const isFinal = (status: OperationStatus): boolean =>
  status === 'succeeded' || status === 'failed' || status === 'cancelled'

/** An event of an operation. */
export interface OperationEvent {
  readonly at: string
  readonly kind: string
  readonly message: string
  readonly data?: Readonly<Record<string, unknown>>
}

/** A complete record of an operation that has ended. Instants are RFC 3339 texts. */
export interface FinishedOperation {
  readonly id: string
  readonly kind: OperationKind
  readonly target: { readonly type: string; readonly id: string; readonly name?: string | undefined }
  /** The resource in its name, when that is not its target. */
  readonly carrier?: { readonly type: string; readonly id: string }
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
/** Of the text that names who requested it. */
export const ACTOR_LENGTH_MAXIMUM = 512

/** The minimum time that remains when a guest has used all its time to shut down. */
const MINUTES_AFTER_GRACE = 5

/** What makes an operation longer than others of its kind. */
export interface Extent {
  /** The amount that is moved. */
  readonly gibibytes?: number | undefined
  /** The time that a guest is given to shut down. */
  readonly graceSeconds?: number | undefined
}

/** When an operation of the kind that starts now must have ended. */
export function deadlineOf(kind: OperationKind, now: Date, { gibibytes = 0, graceSeconds = 0 }: Extent = {}): Date {
  const { minutes = MINUTES_DEFAULT, minutesPerGibibyte = 0 } = ruleOf(kind)
  const allowed = minutes + minutesPerGibibyte * gibibytes
  return new Date(now.getTime() + Math.max(allowed, graceSeconds / 60 + MINUTES_AFTER_GRACE) * 60_000)
}

/** The argument of an operation whose cancellation was requested. */
const CANCEL = 'cancel'
/** Adds the request to cancel to the arguments of an operation. */
export const cancelling: Readonly<Record<string, string>> = { [CANCEL]: 'true' }
/** Whether cancellation of the operation was requested. */
export const isCancelled = ({
  arguments: parameters,
}: {
  readonly arguments?: Readonly<Record<string, string>> | undefined
}): boolean => parameters?.[CANCEL] === 'true'

/** Whether its requester may cancel it. */
export const isCancellable = (kind: OperationKind): boolean => ruleOf(kind).cancellableBy === 'customers'
/** Whether operators may cancel it. */
export const isCancellableByOperators = (kind: OperationKind): boolean => ruleOf(kind).cancellableBy !== undefined

/** The steps of the kind, in order; the last of them is the end. */
export const stepsOf = <Kind extends OperationKind>(kind: Kind): readonly StepOf<Kind>[] =>
  (ruleOf(kind).steps ?? STEPS_DEFAULT) as readonly StepOf<Kind>[] // those of the table
