/** The effects on the shared storage of a zone: they read or set its policy, and record the answer. No answer is a
 *  result too, not an error. */
import { conflict } from '../../../domain/problem.ts'
import type { Store } from '../../../kit/kube/store.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import { Zone, type ZoneSpec, type ZoneStatus } from '../../../resources/catalog/index.ts'
import type { EffectReport } from '../../../kit/reconcile/reconciler.ts'
import { type CephPools, openCephPools } from '../../ceph/pools.ts'
import { StorageRefused } from '../../ceph/program.ts'
import type { EffectsOn } from '../../kit/effects.ts'
import { readStorageLogin } from '../../fencing/effects.ts'
import { StorageAccessFailed } from '../../fencing/storage-access.ts'
import { requireNewest } from '../../kit/newest.ts'
import { truncated } from '../../kit/operation/decision.ts'
import { withRefusalCondition } from '../../kit/refusal.ts'
import type { SharedStorageEffects } from './observed.ts'
import { POLICY_SET } from './storage-policy.ts'

interface Parts {
  readonly store: Store
  readonly clock: Clock
}

export function sharedStorageEffects({ store, clock }: Parts): EffectsOn<SharedStorageEffects, ZoneSpec, ZoneStatus> {
  const open = async (secretName: string): Promise<CephPools> =>
    openCephPools(await readStorageLogin(store, secretName))
  const report = (detail: string, pools: NonNullable<ZoneStatus['sharedStorage']>['pools']): EffectReport => ({
    isReading: true,
    status: { sharedStorage: { readAt: clock.now().toISOString(), detail: truncated(detail), pools } },
  })
  const orDetail = async (zone: { readonly status?: ZoneStatus }, work: () => ReturnType<CephPools['read']>) => {
    try {
      return report('', [...(await work())])
    } catch (error) {
      if (!(error instanceof StorageAccessFailed)) throw error
      return report(error.message, zone.status?.sharedStorage?.pools ?? [])
    }
  }
  return {
    readSharedStorage: ({ access, pools }, zone) =>
      orDetail(zone, async () => (await open(access.secretName)).read(pools)),
    // A controller that has lost its lease must not undo what the next one does.
    setStoragePolicy: withRefusalCondition(POLICY_SET, async ({ access, pools, policy }, zone) => {
      await requireNewest(store, Zone, zone)
      return orDetail(zone, async () => {
        const storage = await open(access.secretName)
        await storage.set(policy.pools ?? pools, policy).catch((error: unknown) => {
          throw error instanceof StorageRefused ? conflict('state_not_allowed', error.message) : error
        })
        return storage.read(pools)
      })
    }),
  }
}
