/** Changes of frontends, backends, members and certificates: one conditional write each. A change of the frontends and
 *  backends increments their generation. */
import { worldOf } from '../../../changes/kit/world.ts'
import { requireConfigured } from '../../../changes/load-balancer.ts'
import {
  MEMBERS_OF_BACKEND_MAXIMUM,
  requireConfigurable,
  requireGeneration,
} from '../../../domain/load-balancer/rules.ts'
import { nameTaken, notFound, Problem } from '../../../domain/problem.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import type { Route } from '../../../kit/http/route.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import {
  type addLoadBalancerMember,
  type LoadBalancerSpec,
  type LoadBalancerStatus,
  memberIdOf,
  nextNumber,
  type removeLoadBalancerMember,
  type setLoadBalancerConfiguration,
  type StoredBackend,
  toMemberView,
  toStoredBackend,
  toStoredFrontend,
  type updateLoadBalancerMember,
} from '../../../resources/load-balancer/index.ts'
import { inWords, WORDS } from '../../kit/words.ts'
import { idOf } from '../../kit/change/id-of.ts'
import { changeObject, type Edit } from '../../kit/plain/change-object.ts'
import { etagOfObject } from '../../kit/plain/objects.ts'
import type { LoadBalancerObject } from './objects.ts'
import type { LoadBalancerParts } from './parts.ts'

type Configuration = Pick<LoadBalancerSpec, 'frontends' | 'backends'>
type Certificates = Pick<LoadBalancerSpec, 'certificates'>
type Member = StoredBackend['members'][number]

/** Writes the configuration that `change` computes from the current one. Throws what it throws, 400 for a configuration
 *  that the proxy would not accept, and 409 for one that may not be changed. A change that `isHarmless` makes no
 *  configuration invalid: it is not refused for a part of the stored one that has become invalid since. */
export async function rewrite<R extends Route>(
  parts: LoadBalancerParts,
  call: Call<R, Customer>,
  change: (spec: LoadBalancerSpec, balancer: LoadBalancerObject) => Configuration | Certificates,
  {
    id = idOf(call),
    isHarmless = false,
    ...claims
  }: { readonly id?: string; readonly isHarmless?: boolean } & Pick<
    Edit<LoadBalancerSpec, LoadBalancerStatus>,
    'claim'
  > = {},
): Promise<LoadBalancerObject> {
  const { accountId } = call.caller
  const patch = (balancer: LoadBalancerObject) => {
    const { spec } = balancer
    const facts = parts.loadBalancers.factsOf(balancer)
    requireConfigurable(facts)
    const changed = change(spec, balancer)
    if (!isHarmless) requireConfigured({ accountId, facts, spec: { ...spec, ...changed } }, worldOf(parts.caches))
    return 'frontends' in changed ? { ...changed, numbered: nextNumber(spec, changed) } : changed
  }
  return inWords(WORDS.rest, () =>
    changeObject(parts, parts.loadBalancers, call, { changes: () => [], patch, ...claims }, id),
  )
}

/** Answers 200 with the load balancer. Throws 409 for another generation than the expected one. */
export async function configure(
  parts: LoadBalancerParts,
  call: Call<typeof setLoadBalancerConfiguration, Customer>,
): Promise<Answer> {
  const { body } = call
  const written = await rewrite(parts, call, (spec, balancer) => {
    requireGeneration(parts.loadBalancers.factsOf(balancer), body.configuration_generation)
    const idOf = (backend: string, name: string): string => {
      const known = spec.backends.find((one) => one.name === backend)?.members.find((one) => one.name === name)
      return known === undefined ? newUuid(parts.random) : memberIdOf(known)
    }
    return {
      frontends: body.frontends.map(toStoredFrontend),
      backends: body.backends.map((backend) => toStoredBackend(backend, idOf)),
    }
  })
  return {
    status: 200,
    body: { load_balancer: parts.loadBalancers.viewOf(written) },
    headers: { etag: etagOfObject(written) },
  }
}

/** The backends with the members of one of them changed. Throws 404 for an unknown backend. */
function withMembers(
  { frontends, backends }: LoadBalancerSpec,
  name: string,
  change: (members: readonly Member[]) => Member[],
): Configuration {
  if (!backends.some((backend) => backend.name === name)) throw notFound('backend')
  return {
    frontends,
    backends: backends.map((backend) =>
      backend.name === name ? { ...backend, members: change(backend.members) } : backend,
    ),
  }
}

/** Answers 201 with the member. Throws 404 for an unknown backend, 409 for a name that is taken and 422 for one member
 *  too many. */
export async function addMember(
  parts: LoadBalancerParts,
  call: Call<typeof addLoadBalancerMember, Customer>,
): Promise<Answer> {
  const {
    params: { name: backend },
    body,
  } = call
  const member = { ...body, id: newUuid(parts.random) }
  const { status } = await rewrite(parts, call, (spec) =>
    withMembers(spec, backend, (members) => {
      const other = members.find(({ name }) => name === member.name)
      if (other !== undefined)
        throw nameTaken(
          `The backend ${backend} has a member of this name.`,
          other.id === undefined ? undefined : { type: 'load_balancer_member', id: other.id },
        )
      if (members.length >= MEMBERS_OF_BACKEND_MAXIMUM)
        throw new Problem(422, `A backend has at most ${MEMBERS_OF_BACKEND_MAXIMUM} members.`)
      return [...members, member]
    }),
  )
  return { status: 201, body: { member: toMemberView(backend, member, status) } }
}

const known = (members: readonly Member[], id: string): Member => {
  const member = members.find((one) => memberIdOf(one) === id)
  if (member === undefined) throw notFound('member')
  return member
}

/** Answers 200 with the member. Throws 404 for an unknown backend or member. */
export async function changeMember(
  parts: LoadBalancerParts,
  call: Call<typeof updateLoadBalancerMember, Customer>,
): Promise<Answer> {
  const {
    params: { name: backend, member_id: id },
    body: { weight, enabled, port },
  } = call
  const { spec, status } = await rewrite(parts, call, (before) =>
    withMembers(before, backend, (members) => {
      const member = known(members, id)
      return members.map((one) =>
        one === member
          ? { ...one, weight: weight ?? one.weight, enabled: enabled ?? one.enabled, port: port ?? one.port }
          : one,
      )
    }),
  )
  const members = spec.backends.find(({ name }) => name === backend)?.members ?? []
  return { status: 200, body: { member: toMemberView(backend, known(members, id), status) } }
}

/** Answers 204. Throws 404 for an unknown backend or member. */
export async function removeMember(
  parts: LoadBalancerParts,
  call: Call<typeof removeLoadBalancerMember, Customer>,
): Promise<Answer> {
  const { name: backend, member_id: id } = call.params
  const remove = (spec: LoadBalancerSpec) =>
    withMembers(spec, backend, (members) => {
      const member = known(members, id)
      return members.filter((one) => one !== member)
    })
  await rewrite(parts, call, remove, { isHarmless: true })
  return { status: 204 }
}
