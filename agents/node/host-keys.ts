/** The public host keys of guests, as they print them on their consoles between the two lines that cloud-init has for
 *  that. Only root of a guest writes there, and nothing on the network can, so whoever connects need not trust the
 *  first  key that is presented. */
import { parsePublicKey } from '../../domain/ssh-key/rules.ts'
import type { Guest, GuestConsole, Hypervisor } from './drivers/hypervisor/hypervisor.ts'

const BEGIN = '-----BEGIN SSH HOST KEY KEYS-----'
const END = '-----END SSH HOST KEY KEYS-----'
/** A block is far shorter. */
const BLOCK_CHARACTERS_MAXIMUM = 16_384
/** As the schema of Instance has it. */
export const HOST_KEYS_MAXIMUM = 8

export interface HostKeys {
  /** `type base64` each, of the first block that the guest printed since its start; undefined while it has printed
   *  none.  Follows the console of the guest from the first call on. */
  of(guest: Pick<Guest, 'name' | 'incarnation'>): readonly string[] | undefined
  /** Calls back with the name of a guest that has printed its keys. The answer ends it. */
  onChange(listener: (name: string) => void): () => void
}

interface Followed {
  readonly incarnation: number
  keys: readonly string[] | undefined
  stop: () => void
}

/** Follows consoles of the hypervisor. */
export function openHostKeys(hypervisor: Pick<Hypervisor, 'console'>): HostKeys {
  const followed = new Map<string, Followed>()
  const listeners = new Set<(name: string) => void>()

  function follow(name: string, incarnation: number): Followed {
    const before = followed.get(name)
    before?.stop()
    const line = hypervisor.console(name)
    // What an earlier start printed may be the keys of a disk that is gone. An agent that has just started cannot tell.
    const entry: Followed = {
      incarnation,
      keys: before === undefined ? lastHostKeys(line.tail().toString('latin1')) : undefined,
      stop: () => {},
    }
    entry.stop = entry.keys === undefined ? read(line, entry, name) : () => {}
    followed.set(name, entry)
    return entry
  }

  function read(line: GuestConsole, entry: Followed, name: string): () => void {
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

/** The keys of the last whole block; undefined without one. Lines that are no keys are left out: other programs write
 *  to  the console meanwhile. */
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
