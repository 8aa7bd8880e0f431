/** The public pool controller: what wakes it, and its effects in PostgreSQL. What it decides is `plan.ts`. */
import { Unavailable } from '../../domain/problem.ts'
import { enqueueMail } from '../../db/mail/index.ts'
import {
  countAllocated,
  findPool,
  forgetPool,
  listHolderMails,
  mirrorPool,
  type Pool,
} from '../../db/public-pool/index.ts'
import { type Effect, type Reconciler } from '../../kit/reconcile/reconciler.ts'
import { PUBLIC_POOL_FINALIZER } from '../../resources/labels.ts'
import { PublicPool, type PublicPoolSpec, type PublicPoolStatus } from '../../resources/public-pool/index.ts'
import { staffAuditEffect } from '../audit.ts'
import { orUnavailable } from '../database.ts'
import { derivedId } from '../operation/stanza.ts'
import { requireNewest } from '../newest.ts'
import type { Parts } from '../parts.ts'
import { grantedCondition, withRefusalCondition } from '../refusal.ts'
import { editorOf } from '../server/direct-edit.ts'
import { MIRRORED, plan, type PoolObject, type Observed, detectEdit } from './plan.ts'

export function publicPoolReconciler(parts: Parts): Reconciler<PublicPoolSpec, PublicPoolStatus, Observed> {
  return {
    name: 'publicpool',
    type: PublicPool,
    finalizer: PUBLIC_POOL_FINALIZER,
    watches: [],
    observe: (pool) => observe(parts, pool),
    plan,
    effects: {
      mirror: mirrorEffect(parts),
      forget: forgetEffect(parts),
      notify: notifyEffect(parts),
      audit: staffAuditEffect(parts, 'public_pool'),
    },
  }
}

async function observe({ store, db }: Parts, pool: PoolObject): Promise<Observed> {
  const { name } = pool.metadata
  const edit = detectEdit(pool)
  return {
    mirror: await orUnavailable(findPool(db, name)),
    allocated: (await orUnavailable(countAllocated(db, [name]))).get(name) ?? 0,
    // Cached objects have no managedFields.
    editor:
      edit === undefined
        ? ''
        : editorOf(
            (await store.get(PublicPool, { name }))?.metadata ?? pool.metadata,
            edit === 'update' ? 'state' : edit === 'create' ? 'cidr' : '',
          ),
  }
}

/** Addresses of a pool that has gone meanwhile would be given to servers. */
const mirrorEffect = ({ store, db }: Parts): Effect =>
  withRefusalCondition(MIRRORED, async (input, pool) => {
    await requireNewest(store, PublicPool, pool)
    // the plan of this folder writes it
    await orUnavailable(db.transaction().execute((tx) => mirrorPool(tx, input as unknown as Pool)))
    return grantedCondition(MIRRORED)
  })

const forgetEffect =
  ({ db }: Parts): Effect =>
  async (input) => {
    const isGone = await orUnavailable(db.transaction().execute((tx) => forgetPool(tx, String(input['id']))))
    if (!isGone) throw new Unavailable('a pool without addresses in use')
    return undefined
  }

/** One mail to each owner for each drain: its id follows from both, so that trying again sends nothing twice. */
const notifyEffect =
  ({ db, clock }: Parts): Effect =>
  async (input) => {
    const owners = await orUnavailable(listHolderMails(db, String(input['id'])))
    for (const recipient of owners)
      await orUnavailable(
        enqueueMail(db, {
          id: derivedId(`${String(input['operationId'])}/${recipient}`),
          recipient,
          subject: SUBJECT,
          body: BODY,
          createdAt: clock.now(),
        }),
      )
    return undefined
  }
const SUBJECT = 'IPv6 addresses of your servers will change'
const BODY = `Some of your servers have an IPv6 prefix of a network that is going to be retired. Each of them can be given another prefix now, while it runs:

POST /v1/servers/{id}/renumber-ipv6

The servers concerned show ipv6_renumber_available. The prefix that they have works on beside the new one until the network is retired.
`
