/** Leases of what a process does once, so that another one can do it when the process is killed. */

/** Throws when the lease may end before the answer comes: somebody else may ask by then. */
export function requireTime(now: Date, leasedUntil: Date, answerMilliseconds: number): void {
  if (now.getTime() + answerMilliseconds > leasedUntil.getTime())
    throw new Error('the lease ends before an answer can come')
}
