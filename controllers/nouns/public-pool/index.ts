/** The public pool controller: what it reads, and its effects in PostgreSQL. `plan.ts` decides. */
import { Unavailable } from '../../../domain/problem.ts'
import { enqueueMail } from '../../../db/mail/index.ts'
import { mail } from '../../../domain/mail/mails.ts'
import { countAllocated, findPool, forgetPool, listHolderMails, mirrorPool } from '../../../db/public-pool/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { PublicPool, type PublicPoolSpec, type PublicPoolStatus } from '../../../resources/public-pool/index.ts'
import { staffAuditEffect } from '../../kit/audit.ts'
import { controller } from '../../kit/controller.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { EffectOn } from '../../kit/effects.ts'
import { findEditor } from '../../kit/operation/direct-edit.ts'
import { derivedId } from '../../../domain/uuid.ts'
import { requireNewest } from '../../kit/newest.ts'
import type { Parts } from '../../kit/parts.ts'
import { grantedCondition, withRefusalCondition } from '../../kit/refusal.ts'
import { detectEdit, fieldOf, MIRRORED, type Observed, plan, type PoolObject, type PublicPoolEffects } from './plan.ts'

type Effect<Name extends keyof PublicPoolEffects> = EffectOn<PublicPoolEffects[Name], PublicPoolSpec, PublicPoolStatus>

export const publicPoolController = controller<PublicPoolEffects>()({
  name: 'publicpool',
  resource: PublicPool,
  sharding: 'by-zone',
  finalizer: finalizerOf(PublicPool),
  plan,
  reads: [],
  // A pool whose operation is its deletion is deleted here.
  writes: [PublicPool],
  open: (parts: Parts) => ({
    watches: [],
    observe: (pool) => observe(parts, pool),
    effects: {
      mirror: mirrorEffect(parts),
      forget: forgetEffect(parts),
      notify: notifyEffect(parts),
      audit: staffAuditEffect(parts, 'public_pool'),
    },
  }),
})

async function observe({ store, db }: Parts, pool: PoolObject): Promise<Observed> {
  const { name } = pool.metadata
  const edit = detectEdit(pool)
  return {
    mirror: await orUnavailable(findPool(db, name)),
    allocated: (await orUnavailable(countAllocated(db, [name]))).get(name) ?? 0,
    editor: edit === undefined ? '' : await findEditor(store, PublicPool, pool, fieldOf(edit)),
  }
}

/** Otherwise addresses of a pool that is deleted meanwhile would be assigned to servers. */
const mirrorEffect = ({ store, db }: Parts): Effect<'mirror'> =>
  withRefusalCondition(MIRRORED, async (mirror, pool) => {
    await requireNewest(store, PublicPool, pool)
    await orUnavailable(db.transaction().execute((tx) => mirrorPool(tx, mirror)))
    return grantedCondition(MIRRORED)
  })

const forgetEffect =
  ({ db }: Parts): Effect<'forget'> =>
  async ({ id }) => {
    const isGone = await orUnavailable(db.transaction().execute((tx) => forgetPool(tx, id)))
    if (!isGone) throw new Unavailable('a pool without addresses in use')
    return undefined
  }

/** One mail to each owner for each drain: its id is derived from both, so that a retry sends nothing twice. */
const notifyEffect =
  ({ db, clock }: Parts): Effect<'notify'> =>
  async ({ id, operationId }) => {
    const owners = await orUnavailable(listHolderMails(db, id))
    for (const recipient of owners)
      await orUnavailable(
        enqueueMail(db, {
          id: derivedId(`${operationId}/${recipient}`),
          recipient,
          mail: mail('addresses_change', {}),
          createdAt: clock.now(),
        }),
      )
    return undefined
  }
