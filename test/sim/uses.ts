/** What a running guest uses is given to nobody else, whatever the stores say: names, addresses, MAC addresses, ports
 *  of the network and cores of hosts. Looked at where it is used, on the hosts, at every instant. */
import type { Storage } from '../../embedded/kubernetes/storage/storage.ts'
import { Instance, type InstanceSpec, nodeNamespace } from '../../resources/instance/index.ts'
import { prefixOf } from '../../domain/public-pool/rules.ts'
import { zoneOf } from './catalog.ts'
import type { Host } from './hosts.ts'

export interface Uses {
  /** Sees what Kubernetes accepts. */
  readonly storage: Storage
  /** What two have at once, so far. */
  look(hosts: readonly Host[]): readonly string[]
}

const NONE: readonly string[] = []

/** `coresOfHost`: so many has each. `isRoomKnown`: some store knows, or the hosts have said, who has them. */
export function watchUses(inner: Storage, coresOfHost: number, isRoomKnown = () => true): Uses {
  /** By Instance; also of those that no state of Kubernetes has. */
  const specs = new Map<string, InstanceSpec>()
  const violations = new Set<string>()
  let seen: readonly Running[] = []
  const instances = `${Instance.group}/${Instance.plural}`
  return {
    storage: {
      ...inner,
      append(record) {
        const { storageKey, key, object } = record
        // of the kind's own schema
        if (storageKey === instances && object !== undefined) specs.set(key, object['spec'] as InstanceSpec)
        return inner.append(record)
      },
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
          if (user !== undefined && user !== name)
            violations.add(`${use} is used by the guests ${user} and ${name} at once`)
          userOf.set(use, name)
        }
        const cores = (coresOn.get(host) ?? 0) + spec.cores
        coresOn.set(host, cores)
        if (cores > coresOfHost && isRoomKnown())
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

/** Addresses in private networks are of the network, and looked at there. */
const usesOf = ({ host, name, ports, spec: { server, hostname, interfaces } }: Running): readonly string[] => [
  `hostname ${hostname} of ${server.namespace} in ${zoneOf(host)}`,
  ...ports.map((port) => `port ${port}`),
  ...interfaces
    .filter(({ portName = name }) => ports.includes(portName))
    .flatMap(({ kind, macAddress, ipv4, ipv6, routedPrefixes = [] }) => [
      `MAC address ${macAddress}`,
      ...(kind === 'private'
        ? []
        : new Set(
            [ipv4?.address, ipv6 && prefixOf(ipv6.address), ...routedPrefixes].filter((one) => one !== undefined),
          )),
    ]),
]
