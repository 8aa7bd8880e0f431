/** The public host keys of guests. Guests print them on their consoles between the two lines of cloud-init. Only root
 *  of a guest can write there, and nothing on the network can. So clients need not trust the first key that is
 *  presented. */
import { parsePublicKey } from '../../domain/ssh-key/rules.ts'
import type { Guest, GuestConsole, Hypervisor } from './drivers/hypervisor/hypervisor.ts'

const BEGIN = '-----BEGIN SSH HOST KEY KEYS-----'
const END = '-----END SSH HOST KEY KEYS-----'
/** A block is much shorter. */
const BLOCK_CHARACTERS_MAXIMUM = 16_384
/** As in the schema of Instance. */
export const HOST_KEYS_MAXIMUM = 8

export interface HostKeys {
  /** `type base64` each, from the first block that the guest printed since its start; undefined before that. The first
   *  call starts to follow the guest's console. */
  of(guest: Pick<Guest, 'name' | 'incarnation'>): readonly string[] | undefined
  /** Calls back with the name of a guest that has printed its keys. Returns a function that stops the calls. */
  onChange(listener: (name: string) => void): () => void
}

interface FollowedGuest {
  readonly incarnation: number
  keys: readonly string[] | undefined
  stop: () => void
}

/** Reads the consoles of the hypervisor. */
export function openHostKeys(hypervisor: Pick<Hypervisor, 'console'>): HostKeys {
  const followed = new Map<string, FollowedGuest>()
  const listeners = new Set<(name: string) => void>()

  function follow(name: string, incarnation: number): FollowedGuest {
    const before = followed.get(name)
    before?.stop()
    const line = hypervisor.console(name)
    // Output of an earlier start may contain keys of a deleted disk. An agent that has just started cannot tell.
    const entry: FollowedGuest = {
      incarnation,
      keys: before === undefined ? lastHostKeys(line.tail().toString('latin1')) : undefined,
      stop: () => {},
    }
    entry.stop = entry.keys === undefined ? read(line, entry, name) : () => {}
    followed.set(name, entry)
    return entry
  }

  function read(line: GuestConsole, entry: FollowedGuest, name: string): () => void {
    let text = ''
    const stop = line.subscribe((event) => {
      if (event.type === 'removed') followed.delete(name)
      if (event.type !== 'output') return
      text = (text + event.bytes.toString('latin1')).slice(-BLOCK_CHARACTERS_MAXIMUM)
      const keys = lastHostKeys(text)
      if (keys === undefined) return
      stop()
      entry.keys = keys
      for (const listener of Array.from(listeners)) listener(name)
    })
    return stop
  }

  return {
    of({ name, incarnation }) {
      const known = followed.get(name)
      return (known?.incarnation === incarnation ? known : follow(name, incarnation)).keys
    },
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

/** The keys of the last complete block; undefined without one. Lines that are not keys are skipped, because other
 *  programs write to the console meanwhile. */
export function lastHostKeys(text: string): readonly string[] | undefined {
  const end = text.lastIndexOf(END)
  const begin = end < 0 ? -1 : text.lastIndexOf(BEGIN, end)
  if (begin < 0) return undefined
  const keys = text
    .slice(begin + BEGIN.length, end)
    .split(/\r?\n/)
    .map((line) => parsePublicKey(line))
    .flatMap((key) => (typeof key === 'string' ? [] : [key.text.split(' ').slice(0, 2).join(' ')]))
  return keys.length === 0 ? undefined : [...new Set(keys)].slice(0, HOST_KEYS_MAXIMUM)
}
