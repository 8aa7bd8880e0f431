/** The system inside a simulated guest: it boots, has a minimal shell on its console, and shuts down. */
import type { Clock } from '../../../../kit/sys/clock.ts'
import { numberBetween, type Random } from '../../../../kit/sys/random.ts'
import type { SimulatedGuest } from './simulated-guest.ts'
import type { SimulatedGuests } from './simulated-guests.ts'

export interface SimulatedSystemOptions {
  readonly clock: Clock
  readonly random: Random
  readonly guests: SimulatedGuests
  /** Called when the guest has shut down and powers itself off. */
  readonly powerOff: (guest: SimulatedGuest) => void
}

export interface SimulatedSystem {
  /** Lets the console type into the guest. */
  connect(guest: SimulatedGuest): void
  boot(guest: SimulatedGuest): void
  shutDown(guest: SimulatedGuest): void
}

const BOOT_MILLISECONDS = { least: 300, most: 2_000 }
const SHUTDOWN_MILLISECONDS = { least: 50, most: 500 }
const INTERRUPT = 0x03

const promptOf = ({ record }: SimulatedGuest): string => `root@${record.hostname}:~# `

export function newSimulatedSystem({ clock, random, guests, powerOff }: SimulatedSystemOptions): SimulatedSystem {
  const print = (guest: SimulatedGuest, text: string) =>
    guests.line(guest.record.name).append(Buffer.from(text.replaceAll('\n', '\r\n')))

  function shutDown(guest: SimulatedGuest): void {
    print(guest, 'The system is going down.\n')
    clock.after(numberBetween(random, SHUTDOWN_MILLISECONDS), () => powerOff(guest))
  }

  function type(guest: SimulatedGuest, bytes: Buffer): void {
    if (!guest.isBooted || guest.isHung || guest.isPaused || guest.isDiskFull) return
    for (const byte of bytes) {
      const character = String.fromCharCode(byte)
      if (byte === INTERRUPT) {
        guest.typed = ''
        print(guest, `^C\n${promptOf(guest)}`)
      } else if (character === '\r' || character === '\n') {
        print(guest, '\n')
        runCommand(guest, guest.typed.trim())
        guest.typed = ''
      } else {
        guest.typed += character
        print(guest, character)
      }
    }
  }

  function runCommand(guest: SimulatedGuest, command: string): void {
    const [program = '', ...rest] = command.split(/\s+/)
    if (program === 'poweroff') return shutDown(guest)
    if (program === 'hostname') print(guest, `${guest.record.hostname}\n`)
    else if (program === 'echo') print(guest, `${rest.join(' ')}\n`)
    else if (program !== '') print(guest, `sh: ${program}: not found\n`)
    print(guest, promptOf(guest))
  }

  return {
    connect(guest) {
      guests.line(guest.record.name).running(guest.record.incarnation, (bytes) => {
        type(guest, bytes)
        return true
      })
    },
    boot(guest) {
      clock.after(numberBetween(random, BOOT_MILLISECONDS), () => {
        if (!guests.isRunning(guest)) return
        guest.isBooted = true
        print(guest, `\nThis guest is simulated.\n\n${promptOf(guest)}`)
      })
    },
    shutDown,
  }
}
