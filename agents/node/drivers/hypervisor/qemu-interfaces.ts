/** Network interfaces of a QEMU guest: their devices, as the command line and QMP take them, and how one comes and goes
 *  while the guest runs. Those that may do so are on ports of their own and named after their slot. */
import { type GuestNetwork, isOvn, OVN_DEVICE, ovnBackend } from '../network/ovn.ts'
import type { GuestInterface } from './hypervisor.ts'
import { listDevices } from './qemu-disks.ts'
import { type Qmp, QmpError } from './qmp.ts'

/** Slots of interfaces, as the schema of Instance has it. */
export const INTERFACE_SLOTS = 7

export const interfaceDevice = (index: number): string => `nic${index}`
/** The port that is kept free for the interface of the slot; q35 cannot add ports at run time. */
export const interfacePort = (slot: number): string => `wire${slot - 1}`

/** Its number among those of the guest: its slot, or where it is in the list. */
export const indexOf = ({ slot }: Pick<GuestInterface, 'slot'>, position: number): number => slot ?? position

/** Of an interface with a slot. On a host without a network for guests it leads nowhere. */
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

/** Gives the interface to the guest. QmpError when the slot is taken by one that the guest has yet to release. */
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

/** Asks the guest to release the interface. Free while it is asked already. */
export async function askForInterface(qmp: Qmp, slot: number): Promise<void> {
  // while the guest is asked already QEMU refuses
  await qmp.execute('device_del', { id: interfaceDevice(slot) }).catch(() => undefined)
}

/** Closes the tap of an interface that the guest does not have. Free when it is closed. */
export async function closeInterface(qmp: Qmp, slot: number): Promise<void> {
  await qmp.execute('netdev_del', { id: `net${slot}` }).catch((error: unknown) => {
    if (!(error instanceof QmpError)) throw error // there is none
  })
}
