import { expect, it } from 'vitest'
import { Endless, Scheduler, SimulatedProcess } from './scheduler.ts'

it('runs what is due at one instant, however much follows from it', async () => {
  const scheduler = new Scheduler(1)
  let ran = 0
  const follow = (): void => void ((ran += 1) < 1_000 && scheduler.after(0, follow))
  scheduler.after(5, follow)
  expect(await scheduler.runUntil(10, () => false)).toBe(false)
  expect(ran).toBe(1_000)
  expect(scheduler.nowMilliseconds).toBe(10)
})

it('names who keeps time from passing', async () => {
  const scheduler = new Scheduler(1)
  const restless = new SimulatedProcess('agent-a1', scheduler)
  restless.begin()
  const again = (): void => void restless.clock().after(0, again)
  again()
  await expect(scheduler.runUntil(1_000)).rejects.toThrow(/^time stands still at 0 ms: agent-a1 ran 20001 times$/)
})

it('ends effects that follow each other for ever', async () => {
  const scheduler = new Scheduler(1)
  let isOver = false
  const restless = async (): Promise<void> => {
    while (!isOver) await scheduler.track(new Promise<void>((resolve) => setImmediate(resolve)))
  }
  scheduler.after(3, () => void restless())
  await expect(scheduler.runUntil(1_000)).rejects.toThrow(Endless)
  isOver = true
})

it('breaks into code that loops without an event', async () => {
  const scheduler = new Scheduler(1)
  const restless = new SimulatedProcess('controllers-1', scheduler)
  restless.begin()
  const loop = async (): Promise<void> => {
    for (const clock = restless.clock(); clock.now().getTime() > 0; ) await undefined
  }
  let ending: unknown
  scheduler.after(7, () => void loop().catch((error: unknown) => void (ending = error)))
  await expect(scheduler.runUntil(1_000)).rejects.toThrow(/^time stands still at 7 ms: controllers-1 goes on and on$/)
  expect(ending).toBeInstanceOf(Endless)
})

it('ends a run that takes ever more steps', async () => {
  const scheduler = new Scheduler(1)
  const tick = (): void => void scheduler.after(1, tick)
  tick()
  await expect(scheduler.runUntil(Number.POSITIVE_INFINITY)).rejects.toThrow(/^no end after \d+ steps$/)
})

it('answers what other threads compute behind what is tracked, in the order in which it was asked for', async () => {
  const scheduler = new Scheduler(1)
  const answered: string[] = []
  const after = (milliseconds: number) => new Promise<void>((resolve) => void setTimeout(resolve, milliseconds))
  scheduler.after(1, () => {
    void scheduler.hold(after(40)).then(() => answered.push('slow'))
    void scheduler.hold(Promise.resolve()).then(() => answered.push('fast'))
    void scheduler.track(after(20)).then(() => answered.push('tracked'))
  })
  await scheduler.runUntil(2)
  expect(answered).toEqual(['tracked', 'slow', 'fast'])
})
