"""What the data say of theta: ridge state, radius, confidence sets, action sets, feature maps."""
