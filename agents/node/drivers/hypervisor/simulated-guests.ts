/** The guests of a simulated host with their serial lines, and the listeners for their changes. */
import { ConsoleLine } from './console-line.ts'
import type { SimulatedGuest, SimulatedGuestRecord } from './simulated-guest.ts'

export interface SimulatedGuests {
  all(): readonly SimulatedGuest[]
  get(name: string): SimulatedGuest | undefined
  /** Whether the guest is still the current one of its name. */
  isHere(guest: SimulatedGuest): boolean
  /** Whether it is the current one and runs. */
  isRunning(guest: SimulatedGuest): boolean
  add(guest: SimulatedGuest): void
  /** Removes the guest. Its serial line remains, stopped. */
  remove(name: string): void
  /** Changes the record of the guest and reports that. */
  update(guest: SimulatedGuest, change: Partial<SimulatedGuestRecord>): void
  /** Reports that the guest of this name has changed. */
  report(name: string): void
  /** Its serial line, created on first use. */
  line(name: string): ConsoleLine
  removeLine(name: string): void
  /** Calls the listener with the name of each guest that changes. Returns a function that stops the calls. */
  listen(listener: (name: string) => void): () => void
}

/** `onChange` gets the records of all guests whenever one has changed. */
export function newSimulatedGuests(
  before: readonly SimulatedGuest[],
  onChange: (guests: readonly SimulatedGuestRecord[]) => void,
): SimulatedGuests {
  const guests = new Map(before.map((guest) => [guest.record.name, guest]))
  const lines = new Map<string, ConsoleLine>()
  const listeners = new Set<(name: string) => void>()

  const isHere = (guest: SimulatedGuest) => guests.get(guest.record.name) === guest
  const report = (name: string) => {
    onChange([...guests.values()].map(({ record }) => record))
    for (const listener of Array.from(listeners)) listener(name)
  }
  const line = (name: string): ConsoleLine => {
    const known = lines.get(name) ?? new ConsoleLine()
    lines.set(name, known)
    return known
  }
  return {
    all: () => [...guests.values()],
    get: (name) => guests.get(name),
    isHere,
    isRunning: (guest) => isHere(guest) && guest.record.state === 'running',
    add: (guest) => void guests.set(guest.record.name, guest),
    remove(name) {
      guests.delete(name)
      line(name).stopped()
      report(name)
    },
    update(guest, change) {
      guest.record = { ...guest.record, ...change }
      if (guest.record.state !== 'running') line(guest.record.name).stopped()
      report(guest.record.name)
    },
    report,
    line,
    removeLine(name) {
      lines.get(name)?.removed()
      lines.delete(name)
    },
    listen(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
