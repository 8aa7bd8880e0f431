/** Network interfaces of a QEMU guest: their devices for the command line and QMP, and plugging and unplugging while
 *  the guest runs. Each interface that can be unplugged has its own port, and is named after its slot. */
import { type GuestNetwork, isOvn, OVN_DEVICE, ovnBackend } from '../network/ovn.ts'
import type { GuestInterface } from './hypervisor.ts'
import { listDevices } from './qemu-disks.ts'
import { type Qmp, QmpError } from './qmp.ts'

/** Slots of interfaces, as in the schema of Instance. */
export const INTERFACE_SLOTS = 7

export const interfaceDevice = (index: number): string => `nic${index}`
/** The port that is reserved for the interface of the slot; q35 cannot add ports at run time. */
export const interfacePort = (slot: number): string => `wire${slot - 1}`

/** Number of the interface in the guest: its slot, or its position in the list. */
export const indexOf = ({ slot }: Pick<GuestInterface, 'slot'>, position: number): number => slot ?? position

/** Backend of an interface with a slot. On a host without a network for guests it is connected to nothing. */
export const slotBackend = (network: GuestNetwork, guest: string, slot: number) =>
  isOvn(network) ? ovnBackend(guest, slot) : { type: 'hubport', id: `net${slot}`, hubid: slot }

export const interfaceOf = (network: GuestNetwork, { macAddress, slot }: GuestInterface, index: number) => ({
  driver: 'virtio-net-pci',
  id: interfaceDevice(index),
  netdev: `net${index}`,
  mac: macAddress,
  romfile: '',
  ...(slot === undefined ? {} : { bus: interfacePort(slot) }),
  ...(isOvn(network) ? OVN_DEVICE : {}),
})

/** Indexes of the interfaces that the guest has. */
export const listInterfaces = async (qmp: Qmp): Promise<readonly number[]> =>
  (await listDevices(qmp)).flatMap((name) => {
    const index = /^nic(\d+)$/.exec(name)?.[1]
    return index === undefined ? [] : [Number(index)]
  })

/** Plugs the interface into the guest. QmpError when the slot has an interface that the guest has yet to release. */
export async function plugInterface(
  qmp: Qmp,
  network: GuestNetwork,
  guest: string,
  added: GuestInterface & { readonly slot: number },
): Promise<void> {
  await qmp.execute('netdev_add', slotBackend(network, guest, added.slot))
  try {
    await qmp.execute('device_add', interfaceOf(network, added, added.slot))
  } catch (error) {
    await closeInterface(qmp, added.slot)
    throw error
  }
}

/** Asks the guest to release the interface. Does nothing when it was asked already. */
export async function askForInterface(qmp: Qmp, slot: number): Promise<void> {
  // QEMU refuses a second request
  await qmp.execute('device_del', { id: interfaceDevice(slot) }).catch(() => undefined)
}

/** Closes the tap of an interface that the guest does not have. Does nothing when it is closed. */
export async function closeInterface(qmp: Qmp, slot: number): Promise<void> {
  await qmp.execute('netdev_del', { id: `net${slot}` }).catch((error: unknown) => {
    if (!(error instanceof QmpError)) throw error // there is none
  })
}
