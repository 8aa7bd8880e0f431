export { storedOf } from '../../resources/shapes.ts'
