/** What guests of managed machines do to whoever asks them, in worlds that have some. */
import type { Hypervisor } from '../../agents/node/drivers/hypervisor/hypervisor.ts'
import { GuestAgentFailed } from '../../agents/node/guest-agent/channel.ts'
import type { MachineDocument } from '../../resources/managed-machine/index.ts'
import type { Scheduler } from './scheduler.ts'

/** Guests of managed machines that lose what they answer, and lie. */
export interface Guests {
  /** The hypervisor, whose guests do so. */
  shaken(hypervisor: Hypervisor): Hypervisor
  /** Whether they still do. */
  isShaken: boolean
  /** Documents that guests took which were not theirs, in words. */
  readonly violations: readonly string[]
}

export function newGuests(scheduler: Scheduler): Guests {
  const violations: string[] = []
  const { random } = scheduler
  const guests: Guests = {
    isShaken: true,
    violations,
    shaken: (hypervisor) => ({
      ...hypervisor,
      async askMachine(name, request) {
        const asked = JSON.parse(request.toString()) as { readonly document?: MachineDocument } // the agent's own
        if (asked.document !== undefined && asked.document.machine !== name)
          violations.push(`guest ${name} is handed the document of ${asked.document.machine}`)
        const dice = guests.isShaken ? random.fraction() : 1
        if (dice < 0.05) {
          scheduler.note('fault guest does not answer')
          throw new GuestAgentFailed('it does not answer')
        }
        const answer = await hypervisor.askMachine(name, request)
        if (dice < 0.1) {
          scheduler.note('fault guest loses its answer')
          throw new GuestAgentFailed('its answer is lost')
        }
        if (dice < 0.14) {
          scheduler.note('fault guest answers something else')
          return Buffer.from('{"machine":')
        }
        if (dice < 0.2) {
          scheduler.note('fault guest lies')
          return Buffer.from(JSON.stringify({ ...JSON.parse(answer.toString()), machine: 'another', isHealthy: true }))
        }
        return answer
      },
    }),
  }
  return guests
}
