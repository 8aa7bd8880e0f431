/** What a running guest uses is given to nobody else, whatever the stores say: names, addresses, MAC addresses, ports
 *  of the network and cores of hosts. Looked at where it is used, on the hosts, at every instant. The one exception is
 *  the limit of decision 137: what both stores have forgotten, because both went back to before it was given, may be
 *  given again. */
import type { Storage } from '../../embedded/kubernetes/storage/storage.ts'
import { Instance, type InstanceSpec, nodeNamespace, nodeOf } from '../../resources/instance/index.ts'
import { prefixOf } from '../../domain/public-pool/rules.ts'
import { zoneOf } from './catalog.ts'
import type { Host } from './hosts.ts'

export interface Uses {
  /** Sees what Kubernetes accepts. */
  readonly storage: Storage
  /** Stores went back. What neither knows, in the words of `useOf`, is forgotten from now on. */
  goBack(known: ReadonlySet<string>): void
  /** What two have at once, so far. */
  look(hosts: readonly Host[]): readonly string[]
}

const NONE: readonly string[] = []
const INSTANCES = `${Instance.group}/${Instance.plural}`

interface Named {
  readonly namespace: string
  readonly name: string
}

/** That a server uses something. */
export const useOf = ({ namespace, name }: Named, use: string): string => `${namespace}/${name} ${use}`
export const hostnameUse = (hostname: string, namespace: string, zone: string): string =>
  `hostname ${hostname} of ${namespace} in ${zone}`
/** Of an address of a server as the stores have it. */
export const addressUse = (address: string): string => (address.includes(':') ? prefixOf(address) : address)
export const roomUse = (host: string): string => `room on ${host}`

/** `coresOfHost`: so many has each. */
export function watchUses(inner: Storage, coresOfHost: number): Uses {
  /** By Instance; also of those that no state of Kubernetes has. */
  const specs = new Map<string, InstanceSpec>()
  const violations = new Set<string>()
  /** Uses of servers that neither store knows. */
  let forgotten: ReadonlySet<string> = new Set()
  /** Uses, with both guests, of which one was given what was forgotten of the other. */
  const givenAgain = new Set<string>()
  /** Instances that were given room where some was forgotten. */
  const crowding = new Set<string>()
  let seen: readonly Running[] = []

  function noteWrite(key: string, spec: InstanceSpec): void {
    const host = hostOf(key)
    const before = specs.get(key)
    specs.set(key, spec)
    const own = usesOnHost(host, spec)
    const news = own.filter((use) => before === undefined || !usesOnHost(host, before).includes(use))
    const grows = before === undefined || spec.cores > before.cores
    if (news.length === 0 && !grows) return
    for (const [otherKey, other] of specs) {
      if (nameOf(otherKey) === nameOf(key)) continue
      const otherHost = hostOf(otherKey)
      if (grows && otherHost === host && forgotten.has(useOf(other.server, roomUse(host)))) crowding.add(key)
      for (const use of usesOnHost(otherHost, other))
        if (news.includes(use) && forgotten.has(useOf(other.server, use)))
          givenAgain.add(shared(use, nameOf(key), nameOf(otherKey)))
    }
    const isNewsOf = (use: string) => [...news, roomUse(host)].some((one) => useOf(spec.server, one) === use)
    forgotten = new Set([...forgotten].filter((use) => !isNewsOf(use)))
  }

  return {
    storage: {
      ...inner,
      append(record) {
        const { storageKey, key, object } = record
        // of the kind's own schema
        if (storageKey === INSTANCES && object !== undefined) noteWrite(key, object['spec'] as InstanceSpec)
        return inner.append(record)
      },
    },
    goBack(known) {
      const all = [...specs].flatMap(([key, spec]) => {
        const host = hostOf(key)
        return [...usesOnHost(host, spec), roomUse(host)].map((use) => useOf(spec.server, use))
      })
      forgotten = new Set(all.filter((use) => !known.has(use)))
    },
    look(hosts) {
      const running = hosts.flatMap(({ name: host, machine }) =>
        machine.running().flatMap(({ name, interfaces: ports = NONE }): readonly Running[] => {
          const spec = specs.get(`${nodeNamespace(host)}/${name}`)
          return spec === undefined ? [] : [{ host, name, ports, spec }]
        }),
      )
      const isSame = (one: Running, index: number) => one.spec === seen[index]?.spec && one.ports === seen[index].ports
      if (running.length === seen.length && running.every(isSame)) return [...violations]
      seen = running
      const userOf = new Map<string, string>()
      const coresOn = new Map<string, number>()
      for (const guest of running) {
        const { host, name, spec } = guest
        for (const use of usesOf(guest)) {
          const user = userOf.get(use)
          if (user !== undefined && user !== name && !givenAgain.has(shared(use, user, name)))
            violations.add(`${use} is used by the guests ${user} and ${name} at once`)
          userOf.set(use, name)
        }
        coresOn.set(host, (coresOn.get(host) ?? 0) + spec.cores)
      }
      for (const [host, cores] of coresOn) {
        const isCrowded = running.some((one) => one.host === host && crowding.has(`${nodeNamespace(host)}/${one.name}`))
        if (cores > coresOfHost && !isCrowded)
          violations.add(`the guests on ${host} use ${cores} of ${coresOfHost} cores`)
      }
      return [...violations]
    },
  }
}

interface Running {
  readonly host: string
  readonly name: string
  /** Of the network, that it has. */
  readonly ports: readonly string[]
  readonly spec: InstanceSpec
}

const hostOf = (key: string): string => nodeOf({ metadata: { namespace: key.slice(0, key.indexOf('/')) } })
const nameOf = (key: string): string => key.slice(key.indexOf('/') + 1)
const shared = (use: string, one: string, other: string): string => [use, ...[one, other].sort()].join(' ')

/** Addresses in private networks are of the network, and looked at there. */
const usesOf = ({ host, name, ports, spec }: Running): readonly string[] => [
  ...ports.map((port) => `port ${port}`),
  ...spec.interfaces
    .filter(({ portName = name }) => ports.includes(portName))
    .map(({ macAddress }) => `MAC address ${macAddress}`),
  ...usesOnHost(host, {
    ...spec,
    interfaces: spec.interfaces.filter(({ portName = name }) => ports.includes(portName)),
  }),
]

/** What PostgreSQL gives in turn, or to the first who wants it: it gives it again once it has forgotten that. */
export const usesOnHost = (host: string, { server, hostname, interfaces }: InstanceSpec): readonly string[] => [
  hostnameUse(hostname, server.namespace, zoneOf(host)),
  ...new Set(
    interfaces.flatMap(({ kind, ipv4, ipv6, routedPrefixes = [] }) =>
      kind === 'private'
        ? []
        : [ipv4?.address, ipv6 && prefixOf(ipv6.address), ...routedPrefixes].filter((one) => one !== undefined),
    ),
  ),
]
