/** What tests against a real peer of fencing share. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'

/** Ends the program whatever it is doing, also one that was never started or has ended. */
export async function endPeer(peer: ChildProcess | undefined): Promise<void> {
  if (peer === undefined || peer.exitCode !== null || peer.signalCode !== null) return
  peer.kill('SIGKILL')
  await once(peer, 'exit')
}
