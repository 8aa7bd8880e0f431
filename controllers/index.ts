/** THE list of reconcilers, and how they run. Built from parts only, so that tests and the simulation build the same in
 *  one process. */
import type { KubeObject } from '../kit/kube/object.ts'
import { type Controller, openController } from '../kit/reconcile/loop.ts'
import type { ControllerMetrics } from '../kit/reconcile/metrics.ts'
import { Instance, Volume } from '../resources/instance/index.ts'
import { Server } from '../resources/server/index.ts'
import { Storage } from '../resources/storage/index.ts'
import { runIntentSweeper } from './change-intent/index.ts'
import type { OpenPowerControl, OpenStorageAccess } from './fencing/index.ts'
import { runClaimSweeper } from './claim/index.ts'
import { networkReconciler } from './network/index.ts'
import type { Ovsdb } from './network/ovsdb.ts'
import { nodeReconciler } from './node/index.ts'
import { operationReconciler } from './operation/reconciler.ts'
import { operationRecords } from './operation/record.ts'
import { orphanReconciler } from './orphan/index.ts'
import type { Parts } from './parts.ts'
import { publicPoolReconciler } from './public-pool/index.ts'
import { inShard, type Shard, WHOLE } from './shard.ts'
import { serverGroupReconciler } from './server-group/index.ts'
import { serverReconciler } from './server/index.ts'
import { storageReconciler } from './storage/index.ts'
import { runUsageCollector, type UsageSource } from './usage/index.ts'
import { zoneReconciler } from './zone/index.ts'

export interface ControllersOptions extends Parts {
  readonly metrics: ControllerMetrics
  /** Whether this process still leads; always, when absent. */
  readonly mayAct?: () => boolean
  /** The whole, when absent. */
  readonly shard?: Shard
  /** The northbound database of OVN; guests are in no network of the zone when absent. */
  readonly northbound?: Ovsdb
  /** Reaches the management controllers of hosts; over the network when absent. */
  readonly openPowerControl?: OpenPowerControl
  /** Reaches their shared storage; over the network when absent. */
  readonly openStorageAccess?: OpenStorageAccess
}

/** Every controller of the shard. They ask for the caches they need, so they are opened before the caches are started.
 */
export function openControllers(options: ControllersOptions): readonly Controller[] {
  const { shard = WHOLE } = options
  const shared = { ...options, operations: operationRecords(options) }
  const zonal = { ...shared, selects: inShard(shard) }
  const ofZones = { ...shared, selects: ({ metadata }: KubeObject) => shard.ownsZone(metadata.name) }
  return [
    openController(serverReconciler(options), zonal),
    openController(storageReconciler(options), zonal),
    openController(
      nodeReconciler(options, { openPower: options.openPowerControl, openStorage: options.openStorageAccess }),
      zonal,
    ),
    openController(publicPoolReconciler(options), zonal),
    openController(zoneReconciler(options), ofZones),
    ...(options.northbound === undefined
      ? []
      : [openController(networkReconciler(options, options.northbound), ofZones)]),
    ...(shard.hasCommonWork
      ? [
          openController(serverGroupReconciler(options), shared),
          openController(operationReconciler(options), shared),
          openController(
            orphanReconciler(options, Instance, Server, ({ spec }) => spec.server),
            shared,
          ),
          openController(
            orphanReconciler(options, Volume, Storage, ({ spec }) => spec.storage),
            shared,
          ),
        ]
      : []),
  ]
}

/** Runs the controllers and the shard's work that has no object, until the signal aborts. */
export async function runControllers(
  controllers: readonly Controller[],
  parts: Parts & { readonly shard?: Shard; readonly usageOf?: UsageSource },
  signal: AbortSignal,
): Promise<void> {
  const common = (parts.shard ?? WHOLE).hasCommonWork
    ? [runIntentSweeper(parts, signal), runClaimSweeper(parts, signal)]
    : []
  const { usageOf } = parts
  const collecting = usageOf === undefined ? [] : [runUsageCollector({ ...parts, usageOf }, signal)]
  await Promise.all([...controllers.map((controller) => controller.run(signal)), ...common, ...collecting])
}
