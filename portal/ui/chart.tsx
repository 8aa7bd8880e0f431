/** Lines over time: one or two series, from zero, the last step dotted because it is still in progress. */
import './chart.css'
import { type ReactNode, useEffect, useRef } from 'react'
import UPlot from 'uplot'
import { minute } from '../texts/format.ts'
import { t } from '../texts/index.ts'

export interface Series {
  readonly name: string
  /** Null where nothing was measured: the line has a gap there. */
  readonly values: readonly (number | null)[]
}

export interface ChartProps {
  readonly title: string
  /** Seconds since 1970. */
  readonly times: readonly number[]
  readonly series: readonly [Series] | readonly [Series, Series]
  readonly format: (value: number) => string
  /** The axis shows at least so much: a quiet line is flat, not a mountain. */
  readonly least: number
}

const HEIGHT = 180
const ROWS_MAXIMUM = 120

export function Chart(props: ChartProps): ReactNode {
  const { title, times, series, format } = props
  const place = useRef<HTMLDivElement>(null)
  usePlot(place, props)
  const peak = peakOf(series)
  return (
    <figure className="chart">
      <figcaption>
        <strong>{title}</strong>
        <span className="legend">
          {series.map(({ name }, at) => (
            <span key={name} className={`key ${at === 1 ? 'second' : ''}`}>
              {name}
            </span>
          ))}
        </span>
      </figcaption>
      <div className="place" ref={place} role="img" aria-label={t().metrics.peak(title, format(peak))} />
      <details>
        <summary>{t().metrics.asTable}</summary>
        <div className="rows" tabIndex={0} role="group" aria-label={title}>
          <Numbers times={times} series={series} format={format} />
        </div>
      </details>
    </figure>
  )
}

const peakOf = (series: ChartProps['series']): number =>
  Math.max(0, ...series.flatMap(({ values }) => values.filter((value) => value !== null)))

const NOTHING = '–'

function Numbers({ times, series, format }: Pick<ChartProps, 'times' | 'series' | 'format'>): ReactNode {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">{t().metrics.time}</th>
          {series.map(({ name }) => (
            <th scope="col" key={name}>
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {times.slice(-ROWS_MAXIMUM).map((time, at) => (
          <tr key={time}>
            <th scope="row">{minute(time)}</th>
            {series.map(({ name, values }) => (
              <td key={name}>{cellOf(values[Math.max(0, times.length - ROWS_MAXIMUM) + at], format)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

const cellOf = (value: number | null | undefined, format: ChartProps['format']): string =>
  value === null || value === undefined ? NOTHING : format(value)

function usePlot(place: { readonly current: HTMLDivElement | null }, props: ChartProps): void {
  const { times, series, least, format } = props
  useEffect(() => {
    const element = place.current
    if (element === null) return
    let plot = drawn(element, { times, series, least, format })
    const redraw = (): void => {
      plot.destroy()
      plot = drawn(element, { times, series, least, format })
    }
    const resize = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }))
    resize.observe(element)
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    document.addEventListener('themechange', redraw)
    scheme.addEventListener('change', redraw)
    return () => {
      resize.disconnect()
      document.removeEventListener('themechange', redraw)
      scheme.removeEventListener('change', redraw)
      plot.destroy()
    }
  }, [place, times, series, least, format])
}

/** A token's colour in the present theme: canvases know no `light-dark()`. */
function colourOf(token: string, place: HTMLElement): string {
  const probe = document.createElement('span')
  probe.style.color = `var(${token})`
  place.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

function drawn(place: HTMLDivElement, { times, series, least, format }: Omit<ChartProps, 'title'>): UPlot {
  const soft = colourOf('--text-soft', place)
  const grid = { stroke: colourOf('--line', place), width: 1 }
  const axis = { stroke: soft, grid, ticks: { show: false }, font: `11px ${getComputedStyle(place).fontFamily}` }
  const top = Math.max(least, peakOf(series)) * 1.08
  const [first, second] = series
  const line = { width: 1.5, points: { show: false } }
  return new UPlot(
    {
      width: Math.max(100, place.clientWidth),
      height: HEIGHT,
      legend: { show: false },
      padding: [10, 12, 0, 0],
      cursor: { sync: { key: 'metrics' }, points: { size: 6 } },
      scales: { y: { range: [0, top] } },
      tzDate: (seconds) => UPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
      axes: [
        { ...axis, size: 28, values: '{HH}:{mm}' },
        { ...axis, size: 78, values: (_plot, ticks) => ticks.map(format) },
      ],
      series: [
        {},
        { ...line, stroke: colourOf('--accent', place), label: first.name },
        ...(second === undefined
          ? []
          : [{ ...line, stroke: colourOf('--good', place), label: second.name, dash: [5, 4] }]),
      ],
    },
    [[...times], [...first.values], ...(second === undefined ? [] : [[...second.values]])],
    place,
  )
}
