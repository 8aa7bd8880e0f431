/** THE list of reconcilers, and how they run. Built from parts only, so that tests and the simulation build the same in one process. */
import { type Controller, openController } from '../kit/reconcile/loop.ts'
import type { ControllerMetrics } from '../kit/reconcile/metrics.ts'
import { Instance, Volume } from '../resources/instance.ts'
import { Server } from '../resources/server.ts'
import { Storage } from '../resources/storage.ts'
import { runIntentSweeper } from './change-intents.ts'
import { runClaimSweeper } from './claims.ts'
import { nodeReconciler } from './node/index.ts'
import { operationReconciler } from './operation/index.ts'
import { operationRecords } from './operation/record.ts'
import { orphanReconciler } from './orphan.ts'
import type { Parts } from './parts.ts'
import { serverReconciler } from './server/index.ts'
import { storageReconciler } from './storage.ts'
import { zoneReconciler } from './zone.ts'

export interface ControllersOptions extends Parts {
  readonly metrics: ControllerMetrics
  /** Whether this process still leads; always, when absent. */
  readonly mayAct?: () => boolean
}

/** Every controller. They ask for the caches they need, so they are opened before the caches are started. */
export function openControllers(options: ControllersOptions): readonly Controller[] {
  const shared = { ...options, operations: operationRecords(options) }
  return [
    openController(serverReconciler(options), shared),
    openController(storageReconciler(options), shared),
    openController(operationReconciler(options), shared),
    openController(orphanReconciler(options, Instance, Server, ({ spec }) => spec.server), shared),
    openController(orphanReconciler(options, Volume, Storage, ({ spec }) => spec.storage), shared),
    openController(nodeReconciler(options), shared),
    openController(zoneReconciler(options), shared),
  ]
}

/** Runs the controllers and the work that has no object, until the signal aborts. */
export async function runControllers(controllers: readonly Controller[], parts: Parts, signal: AbortSignal): Promise<void> {
  await Promise.all([...controllers.map((controller) => controller.run(signal)), runIntentSweeper(parts, signal), runClaimSweeper(parts, signal)])
}
