/** Changes of the configuration of a load balancer. It is sent as a whole, with the generation that it was made from.
 *  Pure. */
import type { LoadBalancer, SetLoadBalancerConfiguration as Configuration } from '../../../client/schema.ts'

type Parts = Pick<LoadBalancer, 'frontends' | 'backends' | 'configuration_generation'>
export type Frontend = Configuration['frontends'][number]
export type Backend = Configuration['backends'][number]

/** The configuration as it is, as a request: without ids and health of members. */
export const configurationOf = ({
  frontends,
  backends,
  configuration_generation: generation,
}: Parts): Configuration => ({
  frontends,
  backends: backends.map(({ members, ...backend }) => ({
    ...backend,
    members: members.map(({ name, address, port, weight, enabled }) => ({ name, address, port, weight, enabled })),
  })),
  configuration_generation: generation,
})

const put = <Item extends { readonly name: string }>(items: readonly Item[], item: Item): Item[] =>
  items.some(({ name }) => name === item.name)
    ? items.map((each) => (each.name === item.name ? { ...each, ...item } : each))
    : [...items, item]

/** With the frontend: in the place of the one with its name, or as the last. */
export function withFrontend(balancer: Parts, frontend: Frontend): Configuration {
  const before = configurationOf(balancer)
  return { ...before, frontends: put(before.frontends, frontend) }
}

/** With the backend; its members stay. */
export function withBackend(balancer: Parts, backend: Backend): Configuration {
  const before = configurationOf(balancer)
  return { ...before, backends: put(before.backends, backend) }
}

export function withoutFrontend(balancer: Parts, name: string): Configuration {
  const before = configurationOf(balancer)
  return { ...before, frontends: before.frontends.filter((each) => each.name !== name) }
}

export function withoutBackend(balancer: Parts, name: string): Configuration {
  const before = configurationOf(balancer)
  return { ...before, backends: before.backends.filter((each) => each.name !== name) }
}

/** The field of the form of a part that a refusal means by a name: `frontends.0.port` and `frontends[0].port` are the
 *  port of the first frontend. Undefined for another part, or for what the form does not ask for. */
export function fieldOfPart(
  name: string,
  {
    list,
    at,
    fields,
  }: { readonly list: string; readonly at: number; readonly fields: Readonly<Record<string, string>> },
): string | undefined {
  const [first, index, ...rest] = name.replaceAll(/\[(\d+)\]/g, '.$1').split('.')
  return first === list && index === String(at) ? fields[rest.join('.')] : undefined
}

/** Frontends that send to the backend: it cannot be removed before them. */
export const usersOf = ({ frontends }: Pick<Parts, 'frontends'>, backend: string): readonly string[] =>
  frontends.filter((each) => each.backend === backend).map(({ name }) => name)
