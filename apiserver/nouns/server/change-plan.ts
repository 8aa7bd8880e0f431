/** Another plan for a server: the room and the quota of both sizes are claimed before the change is accepted, or room
 *  on another node is known to be available. */
import { requireDiskSize } from '../../../domain/storage/rules.ts'
import { unknownPlan } from '../../../changes/kit/machine.ts'
import { worldOf } from '../../../changes/kit/world.ts'
import { badField } from '../../../domain/problem.ts'
import { requireStopped } from '../../../domain/server/rules.ts'
import { acceptSizeChange, endSizeChange } from '../../../db/server/index.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import { type PlanSpec, Template } from '../../../resources/catalog/index.ts'
import { CustomImage } from '../../../resources/custom-image/index.ts'
import { changeServerPlan } from '../../../resources/server/index.ts'
import { operate } from '../../kit/change/operate.ts'
import type { Parts } from '../../kit/parts.ts'
import { findServerPlan } from '../catalog/index.ts'
import type { ServerObject, Servers } from './objects.ts'

export const changePlanEndpoint = (parts: Parts, servers: Servers): Endpoint =>
  customerEndpoint(changeServerPlan, async (call) => {
    const {
      caller: { accountId },
      params: { id: serverId },
      body,
      now,
    } = call
    const server = await servers.read(accountId, serverId)
    servers.requireOwn(server)
    const { cores, memoryMebibytes, storageGibibytes, cpuPool } = choosePlan(parts, server, body.plan)
    const held = server.status?.storageGibibytes ?? server.spec.storageGibibytes ?? 0
    if (body.plan === server.spec.plan && !(body.grow_storage && storageGibibytes > held))
      throw badField('plan', 'is the plan of the server')
    const start: Readonly<Record<string, string>> = body.start === true ? { start: 'true' } : {}
    return operate(parts, servers, call, {
      kind: 'server.change_plan',
      validate: requireStopped,
      gibibytes: server.status?.storageGibibytes ?? 0,
      changes: ({ spec }) => [{ field: 'plan', before: spec.plan, after: body.plan }],
      claim: (tx, { id: operationId }) =>
        acceptSizeChange(
          tx,
          {
            accountId,
            serverId,
            operationId,
            cores,
            memoryMebibytes,
            storageGibibytes: body.grow_storage ? storageGibibytes : 0,
            cpuPool,
          },
          now,
        ),
      release: (tx, { operation: { id: operationId } }) =>
        endSizeChange(tx, { accountId, serverId, operationId, isDone: false }),
      spec: ({ claims }) => ({
        plan: body.plan,
        storageGibibytes: claims.after.storageGibibytes,
        ...(body.start === true ? { desiredPower: 'running' } : {}),
      }),
      arguments: ({ target, claims }) => ({
        previous_plan: target.spec.plan,
        previous_storage_gibibytes: String(claims.before.storageGibibytes),
        ...start,
      }),
    })
  })

/** Throws 400 for a plan that the server cannot have. */
export function choosePlan(
  { caches }: Pick<Parts, 'caches'>,
  { metadata: { namespace = '' }, spec, status }: Pick<ServerObject, 'metadata' | 'spec' | 'status'>,
  name: string,
): PlanSpec {
  const plan = findServerPlan({ caches }, name)?.spec
  if (plan === undefined) throw unknownPlan(worldOf(caches), name)
  requireDiskSize(plan.storageGibibytes, 'plan')
  const held = status?.storageGibibytes ?? spec.storageGibibytes ?? 0
  if (plan.storageGibibytes < held)
    throw badField(
      'plan',
      `its storage of ${plan.storageGibibytes} GiB is smaller than the boot storage of ${held} GiB, which never ` +
        'shrinks',
    )
  const template = spec.template === undefined ? undefined : caches.of(Template).get({ name: spec.template })?.spec
  if (template !== undefined && plan.memoryMebibytes < template.minMemoryMebibytes)
    throw badField('plan', `the template needs ${template.minMemoryMebibytes} MiB of memory`)
  const image =
    spec.customImageId === undefined ? undefined : caches.of(CustomImage).get({ namespace, name: spec.customImageId })
  const { minMemoryMebibytes = 0 } = image?.status ?? {}
  if (plan.memoryMebibytes < minMemoryMebibytes)
    throw badField('plan', `the custom image needs ${minMemoryMebibytes} MiB of memory`)
  return plan
}
