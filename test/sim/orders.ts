/** Nothing of a customer's ends without an order, whatever the stores say: checkers of what hosts do, at every instant.
 *  An order is a deletion that was accepted for the very object, or the spec of the object that says so. */
import type { Hypervisor } from '../../agents/node/drivers/hypervisor/hypervisor.ts'
import type { VolumeStore } from '../../agents/node/drivers/storage/volume-store.ts'
import type { Storage } from '../../embedded/kubernetes/storage/storage.ts'
import { Instance, type InstanceSpec, nodeNamespace, Volume } from '../../resources/instance/index.ts'
import { Server } from '../../resources/server/index.ts'
import { Storage as StorageKind } from '../../resources/storage/index.ts'
import type { Disks } from './disks.ts'
import type { Host } from './hosts.ts'

export interface Orders {
  /** Sees what Kubernetes accepts. */
  readonly storage: Storage
  hypervisor(host: Host, hypervisor: Hypervisor): Hypervisor
  volumes(host: Host, volumes: VolumeStore): VolumeStore
  /** Whatever was written last is somewhere, unless its storage was deleted; and no disk has two writers. */
  look(hosts: readonly Host[]): readonly string[]
  violations(): readonly string[]
}

const keyOf = ({ group, plural }: { readonly group: string; readonly plural: string }) => `${group}/${plural}`
const [INSTANCES, VOLUMES, SERVERS, STORAGES] = [Instance, Volume, Server, StorageKind].map(keyOf)

export function watchOrders(inner: Storage, disks: () => Disks): Orders {
  /** uids of objects whose deletion was accepted in any history. */
  const deleted = new Set<string>()
  const instances = new Map<
    string,
    { readonly uid: string; readonly isLeaving: boolean; readonly spec: InstanceSpec }
  >()
  const leavingVolumes = new Set<string>()
  const violations = new Set<string>()
  const append: Storage['append'] = (record) => {
    const { storageKey, key, object } = record
    const { uid = '', deletionTimestamp } = object?.metadata ?? {}
    const isLeaving = deletionTimestamp !== undefined
    if (isLeaving && [INSTANCES, VOLUMES, SERVERS, STORAGES].includes(storageKey)) deleted.add(uid)
    if (storageKey === INSTANCES) {
      if (object === undefined) instances.delete(key)
      else instances.set(key, { uid, isLeaving, spec: object['spec'] as InstanceSpec }) // of the kind's own schema
    }
    if (storageKey === VOLUMES && isLeaving) leavingVolumes.add(key)
    return inner.append(record)
  }
  const isEndOrdered = (host: Host, name: string): boolean => {
    const guest = host.machine.running().find((one) => one.name === name)
    if (guest === undefined) return true // it does not run
    const instance = instances.get(`${nodeNamespace(host.name)}/${name}`)
    if (deleted.has(guest.uid)) return true
    return (
      instance?.uid === guest.uid &&
      (instance.spec.power === 'stopped' || instance.spec.incarnation > guest.incarnation)
    )
  }
  const mustEnd = (host: Host, name: string) => {
    if (!isEndOrdered(host, name)) violations.add(`guest ${name} on ${host.name} is ended without an order`)
  }
  const isSafe = (volume: string): boolean => disks().hasNewest(volume) || deleted.has(volume)
  return {
    storage: { ...inner, append },
    hypervisor: (host, hypervisor) => ({
      ...hypervisor,
      async destroy(name) {
        mustEnd(host, name)
        await hypervisor.destroy(name)
      },
      async forget(name) {
        mustEnd(host, name)
        await hypervisor.forget(name)
      },
    }),
    volumes: (host, volumes) => ({
      ...volumes,
      async create(volume, signal) {
        const { name, from } = volume
        const wasHere = (await volumes.inspect(name)) !== undefined
        if (!wasHere && from === undefined && disks().writtenTo(name) > 0 && !disks().hasNewest(name))
          violations.add(`disk ${name} is made a second time on ${host.name}, and what it held is nowhere`)
        await volumes.create(volume, signal)
      },
      async remove(name) {
        if ((await volumes.inspect(name)) !== undefined && !leavingVolumes.has(`${nodeNamespace(host.name)}/${name}`))
          violations.add(`disk ${name} on ${host.name} is removed without an order`)
        await volumes.remove(name)
      },
    }),
    look(hosts) {
      for (const volume of disks().written())
        if (!isSafe(volume)) violations.add(`what was written last to disk ${volume} is nowhere`)
      const writers = new Map<string, string>()
      for (const host of hosts)
        for (const guest of host.machine.running())
          for (const path of guest.disks) {
            const place = disks().placeOf(host.name, path)
            const other = writers.get(place)
            if (other !== undefined && other !== `${guest.name} on ${host.name}`)
              violations.add(`disk ${place} has two writers: ${other}, and ${guest.name} on ${host.name}`)
            writers.set(place, `${guest.name} on ${host.name}`)
          }
      return [...violations]
    },
    violations: () => [...violations],
  }
}
