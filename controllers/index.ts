/** THE list of controllers, and how they run. Built from parts only, so that tests and the simulation build the same in
 *  one process. */
import type { KubeObject } from '../kit/kube/object.ts'
import { type Controller, openController } from '../kit/reconcile/loop.ts'
import type { ControllerMetrics } from '../kit/reconcile/metrics.ts'
import { type IntentHandlers, runIntentSweeper, type SweepResult } from './change-intent/index.ts'
import { runClaimSweeper } from './claim/index.ts'
import type { Registration, Sharding } from './controller.ts'
import { networkController, type Ovsdb } from './network/index.ts'
import { type FencingAccess, nodeController } from './node/index.ts'
import { type OperationTargets, operationController } from './operation/reconciler.ts'
import { operationRecords } from './operation/record.ts'
import { orphanInstanceController, orphanVolumeController } from './orphan/index.ts'
import type { Parts } from './parts.ts'
import { publicPoolController } from './public-pool/index.ts'
import { inShard, type Shard, WHOLE } from './shard.ts'
import { serverGroupController } from './server-group/index.ts'
import { serverController } from './server/index.ts'
import { storageController } from './storage/index.ts'
import { runUsageCollector, type UsageSource } from './usage/collector.ts'
import { zoneController } from './zone/index.ts'

export interface ControllersOptions extends Parts, FencingAccess {
  readonly metrics: ControllerMetrics
  /** Whether this process still leads; always, when absent. */
  readonly mayAct?: () => boolean
  /** The whole, when absent. */
  readonly shard?: Shard
  /** The northbound database of OVN; guests are in no network of the zone when absent. */
  readonly northbound?: Ovsdb
}

/** The nouns that customers and operators change. */
const NOUNS: readonly Registration<ControllersOptions>[] = [
  serverController,
  storageController,
  nodeController,
  publicPoolController,
  zoneController,
  networkController,
  serverGroupController,
]

/** Every kind that has operations. */
export const OPERATION_TARGETS = NOUNS.filter(({ operationKinds }) => operationKinds.length > 0).map(
  ({ resource }) => resource,
) as OperationTargets // flows are for kinds with a stanza only

/** Every controller. */
export const CONTROLLERS: readonly Registration<ControllersOptions>[] = [
  ...NOUNS,
  operationController(OPERATION_TARGETS),
  orphanInstanceController,
  orphanVolumeController,
]

/** How half-way changes are judged and undone, of every noun whose changes the API server accepts by intent. */
export const INTENT_HANDLERS: IntentHandlers = CONTROLLERS.flatMap(({ intent }) =>
  intent === undefined ? [] : [intent],
)

/** Which objects a process of the shard looks after; every object when undefined. */
const SELECTORS: Readonly<Record<Sharding, (shard: Shard) => ((root: KubeObject) => boolean) | undefined>> = {
  'by-zone': inShard,
  zones:
    (shard) =>
    ({ metadata }) =>
      shard.ownsZone(metadata.name),
  common: () => undefined,
}

/** Every controller of the shard. They ask for the caches they need, so they are opened before the caches are
 *  started. */
export function openControllers(options: ControllersOptions): readonly Controller[] {
  const { shard = WHOLE } = options
  const shared = { ...options, operations: operationRecords(options) }
  return CONTROLLERS.filter(({ sharding }) => sharding !== 'common' || shard.hasCommonWork).flatMap(
    ({ sharding, open }) => {
      const reconciler = open(options)
      const selects = SELECTORS[sharding](shard)
      return reconciler === undefined
        ? []
        : [openController(reconciler, { ...shared, ...(selects === undefined ? {} : { selects }) })]
    },
  )
}

export interface RunOptions extends Parts {
  readonly shard?: Shard
  readonly usageOf?: UsageSource
  /** Called after each sweep of change intents. */
  readonly onSwept?: (result: SweepResult) => void
}

/** Runs the controllers and the shard's work that has no object, until the signal aborts. */
export async function runControllers(
  controllers: readonly Controller[],
  options: RunOptions,
  signal: AbortSignal,
): Promise<void> {
  const common = (options.shard ?? WHOLE).hasCommonWork
    ? [runIntentSweeper({ ...options, intents: INTENT_HANDLERS }, signal), runClaimSweeper(options, signal)]
    : []
  const { usageOf } = options
  const collecting = usageOf === undefined ? [] : [runUsageCollector({ ...options, usageOf }, signal)]
  await Promise.all([...controllers.map((controller) => controller.run(signal)), ...common, ...collecting])
}
