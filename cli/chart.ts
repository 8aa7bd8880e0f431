/** A series of points as one line of bars for each value. */
import { isMembers, type Members } from './api.ts'

const BARS = '▁▂▃▄▅▆▇█'
const WIDTH_MAXIMUM = 60

/** Whether the answer is a series: `points` with the time `at` and numbers. */
export const pointsOf = (resource: Members): readonly Members[] | undefined => {
  const { points } = resource
  return Array.isArray(points) && points.every((point) => isMembers(point) && typeof point['at'] === 'string')
    ? points.filter(isMembers)
    : undefined
}

/** Lines of bars, each as high as its share of the maximum. Points that do not fit are combined, with their maximum
 *  shown. */
export function chart(points: readonly Members[]): readonly string[] {
  const [first, last] = [points[0], points.at(-1)]
  if (first === undefined || last === undefined) return ['No points.']
  const names = Object.keys(first).filter((name) => typeof first[name] === 'number')
  const width = Math.max(0, ...names.map((name) => name.length))
  return [
    `From ${String(first['at'])} to ${String(last['at'])}`,
    ...names.map((name) => {
      const values = condensed(points.map((point) => Number(point[name])))
      const most = Math.max(...values)
      const bars = values.map((value) => BARS[most === 0 ? 0 : Math.ceil((value / most) * (BARS.length - 1))] ?? '')
      return `${name.padEnd(width)}  ${bars.join('')}  most ${most}`
    }),
  ]
}

function condensed(values: readonly number[]): readonly number[] {
  const each = Math.ceil(values.length / WIDTH_MAXIMUM)
  return Array.from({ length: Math.ceil(values.length / each) }, (_, at) =>
    Math.max(...values.slice(at * each, (at + 1) * each)),
  )
}
