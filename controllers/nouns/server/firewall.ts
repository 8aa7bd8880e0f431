import { type Decision, type OperationInput, unchanged } from './decision.ts'
import { program } from './network-ports.ts'

const LOOK_SECONDS = 1

/** The flow of server.firewall. A server without room on any node gets its firewall together with the room. */
export function updateFirewall(input: OperationInput): Decision {
  const decision: Decision = { ...unchanged(input), step: 'done' }
  return program(input).isInstalled
    ? { ...decision, outcome: 'succeeded' }
    : { ...decision, waitFor: 'the host to filter by the firewall', waitSeconds: LOOK_SECONDS }
}
